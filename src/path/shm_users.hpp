#pragma once
// Our own user and strangers, as the kernel tells who is at the other end of a Unix socket. What a stranger gave us is
// closed where it can hold up nobody.

#include <cstdint>

#include "base/foreign_descriptor.hpp"
#include "base/slow_closer.hpp"

namespace fairlead::path {

/// Who is at the other end, as the kernel says.
struct ShmCredentials {
  std::uint32_t user = ~0U;
  std::int32_t process = 0;  // 0 if it is in a foreign PID namespace
};

class ShmUsers {
 public:
  bool is_own(const ShmCredentials& who) const;
  /// What leads to them, or came from them.
  base::ForeignDescriptor hold(base::FileDescriptor file, const ShmCredentials& who) {
    return {std::move(file), is_own(who) ? nullptr : &closer_};
  }
  base::SlowCloser& closer() noexcept { return closer_; }

 private:
  base::SlowCloser closer_;
};

}  // namespace fairlead::path
