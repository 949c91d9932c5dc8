#include "tools/perf/control.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "tools/base/now.hpp"

namespace fairlead::tools {
namespace {

std::unexpected<Error> no_message(Status status, int number, std::string why) {
  return std::unexpected(Error{status, number, std::move(why)});
}

}  // namespace

Result<std::pair<PerfControl, PerfControl>> PerfControl::make_pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return no_message(Status::system, errno, std::string("cannot make a pair of sockets: ") + std::strerror(errno));
  return std::pair(PerfControl(base::FileDescriptor(ends[0])), PerfControl(base::FileDescriptor(ends[1])));
}

bool PerfControl::send(const nlohmann::json& message) {
  const std::string line = message.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + '\n';
  ssize_t sent;
  do sent = ::send(socket_.get(), line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(line.size());
}

Result<nlohmann::json> PerfControl::receive(Duration at_most) {
  const Instant deadline = at_most == kForEver ? Instant::max() : now() + at_most;
  for (;;) {
    if (const std::size_t end = taken_.find('\n'); end != std::string::npos) {
      nlohmann::json message =
          nlohmann::json::parse(taken_.begin(), taken_.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
      taken_.erase(0, end + 1);
      if (message.is_object()) return message;
      return no_message(Status::invalid, 0, "it sent no JSON object");
    }
    if (taken_.size() >= kLineMax) return no_message(Status::invalid, 0, "it sent a line without an end");
    if (!wait_until_readable(deadline)) return no_message(Status::silent, 0, "nothing came in time");
    std::array<char, kLineMax> bytes;
    const ssize_t received = ::recv(socket_.get(), bytes.data(), kLineMax - taken_.size(), MSG_DONTWAIT);
    if (received == 0) return no_message(Status::unreachable, 0, "it closed the connection");
    if (received > 0)
      taken_.append(bytes.data(), static_cast<std::size_t>(received));
    else if (errno != EINTR && errno != EAGAIN)
      return no_message(Status::unreachable, errno, std::string("the connection broke: ") + std::strerror(errno));
  }
}

bool PerfControl::is_readable() const {
  pollfd look{.fd = socket_.get(), .events = POLLIN, .revents = 0};
  return !taken_.empty() || ::poll(&look, 1, 0) > 0;
}

bool PerfControl::wait_until_readable(Instant deadline) const {
  for (;;) {
    pollfd look{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    int patience = -1;
    if (deadline != Instant::max()) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - now()).count();
      patience = static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000));
    }
    const int ready = ::poll(&look, 1, patience);
    if (ready > 0) return true;
    if (ready == 0 && now() >= deadline) return false;
    if (ready < 0 && errno != EINTR) return true;  // recv() reports it
  }
}

}  // namespace fairlead::tools
