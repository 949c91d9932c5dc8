#pragma once
// Tells our own user from strangers, by the credentials that the kernel reports for a Unix socket. Descriptors from a
// stranger are closed on a thread of their own, where a slow close delays nobody.
//
// In a user namespace, the kernel reports all unmapped users as one number (overflowuid, 65534). A process that runs
// under this number cannot tell them from its own processes, and treats all of them as strangers.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/foreign_descriptor.hpp"
#include "base/slow_closer.hpp"

namespace fairlead::shm {

/// Credentials of the other process, as the kernel reports them.
struct Credentials {
  std::uint32_t user = ~0U, group = ~0U;
  std::int32_t process = 0;  // PID; 0 if it is in a foreign PID namespace
};

class Users {
 public:
  /// Returns the number that stands for several users, or nullopt if each user has a number of its own. `map`: the text
  /// of /proc/self/uid_map.
  static std::optional<std::uint32_t> shared_number(std::string_view map, std::uint32_t overflow);

  Users();

  bool is_own(const Credentials& who) const;
  /// Returns why a process is a stranger, and the remedy.
  std::string reason(const Credentials& who) const;
  /// Wraps a descriptor that leads to that process or came from it.
  base::ForeignDescriptor hold(base::FileDescriptor file, const Credentials& who) {
    return {std::move(file), is_own(who) ? nullptr : &closer_};
  }
  base::SlowCloser& closer() noexcept { return closer_; }

 private:
  std::optional<std::uint32_t> shared_;  // the number that several users share
  base::SlowCloser closer_;
};

}  // namespace fairlead::shm
