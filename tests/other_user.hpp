#pragma once
// A process of another user of this host. It and the test exchange single letters. A root test forks a child that drops
// its rights. Otherwise the test first becomes root of a user namespace with other users (newuidmap, /etc/subuid).

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/file_descriptor.hpp"

namespace fairlead::tests {

class OtherUser {
 public:
  static constexpr std::uint32_t kNobody = 65534, kSomebody = 4001;

  /// Returns the reason why this process cannot make processes of other users, or nothing. Call it before threads
  /// start.
  static std::optional<std::string> become_able();

  /// Runs body(process) in a child with that user's rights. There `process` is the other end. The child then ends.
  template <typename Body>
  OtherUser(std::uint32_t user, Body&& body) {
    if (!begin(user)) return;
    std::forward<Body>(body)(*this);
    end();
  }
  OtherUser(const OtherUser&) = delete;
  OtherUser& operator=(const OtherUser&) = delete;
  /// Sends SIGKILL if the process still runs.
  ~OtherUser();

  void say(char word);
  /// False if the other end says another letter or has ended.
  bool hear(char word);
  /// 0 if the other end has ended.
  char hear_any();
  /// Waits for the child's end and returns its exit code, or 128 + signal if it was killed.
  int wait();

 private:
  bool begin(std::uint32_t user);  // true in the child
  [[noreturn]] static void end();

  base::FileDescriptor line_;
  pid_t child_ = -1;
};

}  // namespace fairlead::tests
