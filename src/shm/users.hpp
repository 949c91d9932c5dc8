#pragma once
// Our own user and strangers, as the kernel tells who is at the other end of a Unix socket. What a stranger gave us is
// closed where it can hold up nobody.
//
// In a user namespace the kernel tells one number of all users that it has none for there (overflowuid, 65534): whoever
// has that number himself cannot tell them from his own processes, and takes them all for strangers.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/foreign_descriptor.hpp"
#include "base/slow_closer.hpp"

namespace fairlead::shm {

/// Who is at the other end, as the kernel says.
struct Credentials {
  std::uint32_t user = ~0U, group = ~0U;
  std::int32_t process = 0;  // 0 if it is in a foreign PID namespace
};

class Users {
 public:
  /// `map` as in /proc/self/uid_map: the number that stands for several users; none if each has his own.
  static std::optional<std::uint32_t> shared_number(std::string_view map, std::uint32_t overflow);

  Users();

  bool is_own(const Credentials& who) const;
  /// Why somebody is a stranger, and what helps.
  std::string reason(const Credentials& who) const;
  /// What leads to them, or came from them.
  base::ForeignDescriptor hold(base::FileDescriptor file, const Credentials& who) {
    return {std::move(file), is_own(who) ? nullptr : &closer_};
  }
  base::SlowCloser& closer() noexcept { return closer_; }

 private:
  std::optional<std::uint32_t> shared_;  // whom we are told as several users
  base::SlowCloser closer_;
};

}  // namespace fairlead::shm
