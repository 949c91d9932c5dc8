#pragma once
// A descriptor that becomes readable when another one does, or at a point in time. An event loop sleeps on it for a
// machine that has deadlines but no thread. It is created on first use.

#include <fairlead/time.hpp>

#include "base/file_descriptor.hpp"

namespace fairlead::net {

class TimedDescriptor {
 public:
  /// Returns the descriptor, and creates it on the first call. Returns -1 if `other` is invalid or no descriptor is
  /// left.
  int open(int other);
  /// Makes the descriptor readable from `at` on; until then it is not. Makes no system call if nothing changes.
  void set(Instant at);

 private:
  base::FileDescriptor both_, timer_;
  Instant set_to_ = kNever;
};

}  // namespace fairlead::net
