#pragma once
// A process of another user of this host, which a test leads by the hand: both sides say single letters to each other.
// Root makes it a child that has given up its rights. Whoever is not root becomes root of a user namespace first, in
// which there are other users (newuidmap, /etc/subuid).

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

  /// What hinders this process from making processes of other users; nothing from then on. Before there are threads.
  static std::optional<std::string> become_able();

  /// Runs body(process) in a child with that user's rights, then ends it; there, this class is the other end.
  template <typename Body>
  OtherUser(std::uint32_t user, Body&& body) {
    if (!begin(user)) return;
    std::forward<Body>(body)(*this);
    end();
  }
  OtherUser(const OtherUser&) = delete;
  OtherUser& operator=(const OtherUser&) = delete;
  /// SIGKILL, if it still runs.
  ~OtherUser();

  void say(char word);
  /// False if the other end says something else, or is gone.
  bool hear(char word);
  /// 0 if the other end is gone.
  char hear_any();
  /// Waits for the child's end: its exit code, 128 + signal if it was killed.
  int wait();

 private:
  bool begin(std::uint32_t user);  // true in the child
  [[noreturn]] static void end();

  base::FileDescriptor line_;
  pid_t child_ = -1;
};

}  // namespace fairlead::tests
