#pragma once
// A descriptor that a process keeps free. When it has no other left, it can still accept a connection, and tell the
// caller why it is refused.

#include <fcntl.h>

#include <cerrno>

#include <fairlead/error.hpp>

#include "base/file_descriptor.hpp"

namespace fairlead::host {

class SpareDescriptor {
 public:
  SpareDescriptor() { refill(); }

  /// Frees it. Returns false if it is in use already.
  bool give() noexcept {
    const bool is_there = spare_.is_open();
    spare_ = {};
    return is_there;
  }
  /// Takes a descriptor again, if one is free.
  void refill() noexcept {
    if (!spare_.is_open()) spare_ = one();
  }
  /// Returns whether the process has no free descriptor.
  static bool are_used_up() noexcept { return !one().is_open() && errno == EMFILE; }
  static Error error() {
    return {Status::no_memory, EMFILE,
            "the host engine has as many files open as it may: raise its limit (ulimit -n, or LimitNOFILE= in its "
            "systemd unit)"};
  }

 private:
  static base::FileDescriptor one() noexcept { return base::FileDescriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

  base::FileDescriptor spare_;
};

}  // namespace fairlead::host
