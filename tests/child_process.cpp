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

#include <random>
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

bool can_bind_as(int type, std::uint32_t address, int port) {
  const int descriptor = socket(AF_INET, type | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(address);
  at.sin_port = htons(static_cast<std::uint16_t>(port));
  const bool is_bound = bind(descriptor, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0;
  close(descriptor);
  return is_bound;
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

// Not one that the kernel would choose for somebody else in the next moment: those begin at 32768.
int free_port() {
  constexpr int kFirst = 10'000, kCount = 20'000, kTries = 1000;
  static std::mt19937 random(std::random_device{}());
  for (int tries = 0; tries < kTries; ++tries) {
    const int port = kFirst + static_cast<int>(random() % kCount);
    if (can_bind(port) && can_bind_as(SOCK_STREAM, INADDR_ANY, port)) return port;
  }
  return 0;
}

bool can_bind(int port) {
  return can_bind_as(SOCK_DGRAM, INADDR_LOOPBACK, port);
}

}  // namespace fairlead::tests
