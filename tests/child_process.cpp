#include "tests/child_process.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>
#include <fstream>
#include <random>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>

extern char** environ;  // from the C library

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

/// Reserves the port for this process by the name of a socket that stays open until the process ends.
bool claim(int port) {
  const int descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const auto end = fmt::format_to_n(name.sun_path + 1, sizeof name.sun_path - 1, "fairlead-test-port-{}", port).out;
  const auto length = static_cast<socklen_t>(end - reinterpret_cast<char*>(&name));
  if (bind(descriptor, reinterpret_cast<const sockaddr*>(&name), length) == 0) return true;
  close(descriptor);
  return false;
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& words) {
  output_ = memfd_create("output", MFD_CLOEXEC);
  error_output_ = memfd_create("error output", MFD_CLOEXEC);
  // Opened anew for appending, so that the child does not share our file offset.
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

std::optional<std::chrono::nanoseconds> cpu_time_of(pid_t process) {
  clockid_t clock{};
  timespec time{};
  if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &time) != 0) return {};
  return std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec};
}

bool wait_until_busy(pid_t process, std::chrono::nanoseconds cpu_time, std::chrono::milliseconds limit) {
  for (const auto deadline = Clock::now() + limit; Clock::now() < deadline; std::this_thread::sleep_for(kLook)) {
    const auto used = cpu_time_of(process);
    if (!used || *used >= cpu_time) return used.has_value();
  }
  return false;
}

// Avoids the kernel's ephemeral ports, which begin at 32768, and those of scripts/verbs_programs.sh, which end at
// 18999. claim() reserves the port among tests until this process ends.
int free_port() {
  constexpr int kFirst = 19'000, kCount = 13'000;
  static std::mt19937 random(std::random_device{}());
  const int start = static_cast<int>(random() % kCount);
  for (int i = 0; i < kCount; ++i) {
    const int port = kFirst + (start + i) % kCount;
    if (claim(port) && can_bind(port) && can_bind_as(SOCK_STREAM, INADDR_ANY, port)) return port;
  }
  throw std::runtime_error("no port from 19000 to 31999 is free");
}

bool can_bind(int port) {
  return can_bind_as(SOCK_DGRAM, INADDR_LOOPBACK, port);
}

bool listens(pid_t process, int port) {
  const std::string wanted = fmt::format(":{:04X} ", port);
  struct {
    const char* table;
    const char* listening;
  } const kinds[] = {{"tcp", " 0A "}, {"tcp6", " 0A "}, {"udp", " 07 "}, {"udp6", " 07 "}};
  for (const auto& kind : kinds) {
    std::ifstream table(fmt::format("/proc/{}/net/{}", process, kind.table));
    for (std::string line; std::getline(table, line);) {
      const auto local = line.find(wanted);
      if (local != std::string::npos && local < 50 && line.find(kind.listening) != std::string::npos) return true;
    }
  }
  return false;
}

bool is_installed(const std::string& program) {
  return run({"sh", "-c", "command -v " + program}, std::chrono::seconds{10}).exit_code == 0;
}

}  // namespace fairlead::tests
