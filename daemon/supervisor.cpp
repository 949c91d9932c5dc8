#include "daemon/supervisor.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>

#include "base/environment.hpp"

namespace fairlead::daemon {
namespace {

constexpr int kFirstInherited = 3;

std::optional<std::uint64_t> number_in(const char* variable) {
  const char* const text = base::environment(variable);
  const std::string_view digits = text == nullptr ? "" : text;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return error == std::errc{} && end == digits.data() + digits.size() ? std::optional(number) : std::nullopt;
}

/// Environment variables are inherited, so they may be meant for another process.
bool is_for_us(const char* variable) {
  return number_in(variable) == static_cast<std::uint64_t>(::getpid());
}

}  // namespace

base::FileDescriptor take_inherited_socket() {
  if (!is_for_us("LISTEN_PID") || number_in("LISTEN_FDS").value_or(0) == 0) return {};
  if (::fcntl(kFirstInherited, F_SETFD, FD_CLOEXEC) != 0) return {};
  return base::FileDescriptor(kFirstInherited);
}

void notify(std::string_view state) {
  const char* const text = base::environment("NOTIFY_SOCKET");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string_view name = text == nullptr ? "" : text;
  if (name.empty() || name.size() >= sizeof address.sun_path) return;
  std::memcpy(address.sun_path, name.data(), name.size());
  if (name[0] == '@') address.sun_path[0] = '\0';
  const base::FileDescriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ::sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
           reinterpret_cast<const sockaddr*>(&address),
           static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size()));
}

base::Duration watchdog_period() {
  if (base::environment("WATCHDOG_PID") != nullptr && !is_for_us("WATCHDOG_PID")) return {};
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max() / 1000;  // so that nanoseconds fit
  const std::uint64_t microseconds = number_in("WATCHDOG_USEC").value_or(0);
  return microseconds > kMost ? base::Duration{} : std::chrono::microseconds(microseconds);
}

}  // namespace fairlead::daemon
