#pragma once
// A descriptor that is readable when another one is, or from a point in time on: what an event loop sleeps on for a
// machine that has deadlines and no thread. Made when it is asked for; nothing is done for who never asks.

#include <fairlead/time.hpp>

#include "base/file_descriptor.hpp"

namespace fairlead::net {

class TimedDescriptor {
 public:
  /// Makes it, or tells the one that there is. -1: the other is none, or no descriptor is left.
  int open(int other);
  /// From then on it is readable; not any more if it was. No system call if nothing changes.
  void set(Instant at);

 private:
  base::FileDescriptor both_, timer_;
  Instant set_to_ = kNever;
};

}  // namespace fairlead::net
