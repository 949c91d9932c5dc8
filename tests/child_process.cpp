#include "tests/child_process.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <random>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>

#include "tools/process/executable.hpp"

namespace fairlead::tests {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{2};

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

Finished run(const std::vector<std::string>& words, std::chrono::milliseconds limit) {
  ChildProcess process(words);
  const int exit_code = process.wait(limit);
  return {exit_code, process.output(), process.error_output()};
}

bool wait_until_busy(pid_t process, std::chrono::nanoseconds cpu_time, std::chrono::milliseconds limit) {
  for (const auto deadline = Clock::now() + limit; Clock::now() < deadline; std::this_thread::sleep_for(kLook)) {
    const auto used = cpu_time_of(process);
    if (!used || *used >= cpu_time) return used.has_value();
    siginfo_t
        ended{};  // the time of a process that has ended can be asked for until its parent has taken its exit code
    if (::waitid(P_PID, static_cast<id_t>(process), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid != 0)
      return false;
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
  return tools::find_executable(program, tools::kSystemFolders).has_value();
}

}  // namespace fairlead::tests
