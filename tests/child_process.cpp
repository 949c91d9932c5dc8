#include "tests/child_process.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

extern char** environ;  // of the C library

namespace fairlead::tests {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{2};

std::string content_of(int descriptor) {
  std::string text(static_cast<std::size_t>(lseek(descriptor, 0, SEEK_END)), '\0');
  const ssize_t length = pread(descriptor, text.data(), text.size(), 0);
  text.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  return text;
}

/// The port that was bound, 0 if none.
int bind_for_a_moment(int port) {
  const int probe = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  socklen_t length = sizeof address;
  const bool is_bound = bind(probe, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
                        getsockname(probe, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  close(probe);
  return is_bound ? ntohs(address.sin_port) : 0;
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& words) {
  output_ = memfd_create("output", MFD_CLOEXEC);
  error_output_ = memfd_create("error output", MFD_CLOEXEC);
  // Opened anew, for appending: our own reading must not move the place where the process writes.
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  const std::string own = "/proc/" + std::to_string(getpid()) + "/fd/";
  posix_spawn_file_actions_addopen(&actions, 1, (own + std::to_string(output_)).c_str(), O_WRONLY | O_APPEND, 0);
  posix_spawn_file_actions_addopen(&actions, 2, (own + std::to_string(error_output_)).c_str(), O_WRONLY | O_APPEND, 0);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  if (posix_spawnp(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ) != 0) {
    pid_ = -1;
    exit_code_ = 127;
  }
  posix_spawn_file_actions_destroy(&actions);
}

ChildProcess::~ChildProcess() {
  if (!has_ended()) {
    kill(pid_, SIGKILL);
    wait(std::chrono::seconds{10});
  }
  close(output_);
  close(error_output_);
}

void ChildProcess::send_signal(int number) const {
  if (pid_ > 0 && exit_code_ < 0) kill(pid_, number);
}

bool ChildProcess::has_ended() {
  if (exit_code_ >= 0) return true;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return false;
  exit_code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return true;
}

int ChildProcess::wait(std::chrono::milliseconds limit) {
  for (const auto deadline = Clock::now() + limit; !has_ended() && Clock::now() < deadline;)
    std::this_thread::sleep_for(kLook);
  return exit_code_;
}

bool ChildProcess::wait_for_text(const std::string& text, std::chrono::milliseconds limit) {
  for (const auto deadline = Clock::now() + limit;;) {
    const bool is_over = has_ended() || Clock::now() >= deadline;
    if (output().find(text) != std::string::npos || error_output().find(text) != std::string::npos) return true;
    if (is_over) return false;
    std::this_thread::sleep_for(kLook);
  }
}

std::string ChildProcess::output() const {
  return content_of(output_);
}

std::string ChildProcess::error_output() const {
  return content_of(error_output_);
}

Finished run(const std::vector<std::string>& words, std::chrono::milliseconds limit) {
  ChildProcess process(words);
  const int exit_code = process.wait(limit);
  return {exit_code, process.output(), process.error_output()};
}

int free_port() {
  return bind_for_a_moment(0);
}

bool can_bind(int port) {
  return bind_for_a_moment(port) == port;
}

}  // namespace fairlead::tests
