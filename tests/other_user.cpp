#include "tests/other_user.hpp"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include <fmt/format.h>

#include "tests/child_process.hpp"

namespace fairlead::tests {
namespace {

/// Returns the first subordinate id of the user in /etc/subuid or /etc/subgid.
std::optional<std::uint64_t> first_of(const char* file, std::uint32_t user) {
  const std::string own_name = run({"id", "-un"}).output;
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string name = line.substr(0, colon);
    if (name + "\n" == own_name || name == std::to_string(user)) return std::strtoull(&line[colon + 1], nullptr, 10);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> OtherUser::become_able() {
  const std::uint32_t user = ::geteuid(), group = ::getegid();
  if (user == 0) return std::nullopt;
  const auto users = first_of("/etc/subuid", user), groups = first_of("/etc/subgid", user);
  if (!users || !groups) return "needs root, or ids of its own in /etc/subuid and /etc/subgid";
  const std::string process = std::to_string(::getpid());
  int lines[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, lines) != 0) return "no socket pair";
  const base::FileDescriptor here(lines[0]), there(lines[1]);
  const pid_t mapper = ::fork();  // the namespace's map is written from outside
  if (mapper == 0) {
    char word = 0;
    ::recv(there.get(), &word, 1, 0);
    const auto map = [&](const char* program, std::uint32_t own, std::uint64_t first) {
      return run({program, process, "0", std::to_string(own), "1", "1", std::to_string(first), "65535"}).exit_code;
    };
    word = map("newuidmap", user, *users) == 0 && map("newgidmap", group, *groups) == 0 ? 'y' : 'n';
    ::send(there.get(), &word, 1, MSG_NOSIGNAL);
    ::_exit(0);
  }
  const bool is_apart = ::unshare(CLONE_NEWUSER) == 0;
  char word = 'g';
  ::send(here.get(), &word, 1, MSG_NOSIGNAL);
  ::recv(here.get(), &word, 1, 0);
  ::waitpid(mapper, nullptr, 0);
  if (!is_apart) return fmt::format("no user namespace: {}", std::strerror(errno));
  if (word != 'y') return "newuidmap or newgidmap failed (package uidmap)";
  return ::setuid(0) == 0 && ::setgid(0) == 0 ? std::nullopt : std::optional<std::string>("not root of its namespace");
}

bool OtherUser::begin(std::uint32_t user) {
  int lines[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, lines) != 0) return false;
  base::FileDescriptor here(lines[0]), there(lines[1]);
  child_ = ::fork();
  if (child_ != 0) {
    line_ = std::move(here);
    return false;
  }
  // Close all descriptors of the test, as in a program of its own.
  const auto kept = static_cast<unsigned>(there.get());
  ::close_range(3, kept - 1, 0);
  ::close_range(kept + 1, ~0U, 0);
  line_ = std::move(there);
  if (::setgroups(0, nullptr) != 0 || ::setgid(user) != 0 || ::setuid(user) != 0) ::_exit(126);
  return true;
}

void OtherUser::end() {
  ::_exit(0);
}

OtherUser::~OtherUser() {
  if (child_ > 0) {
    ::kill(child_, SIGKILL);
    wait();
  }
}

void OtherUser::say(char word) {
  ::send(line_.get(), &word, 1, MSG_NOSIGNAL);
}

bool OtherUser::hear(char word) {
  return hear_any() == word;
}

char OtherUser::hear_any() {
  char heard = 0;
  return ::recv(line_.get(), &heard, 1, 0) == 1 ? heard : '\0';
}

int OtherUser::wait() {
  int status = 0;
  if (child_ <= 0 || ::waitpid(child_, &status, 0) != child_) return -1;
  child_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace fairlead::tests
