#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/file_descriptor.hpp"
#include "observe/floor.hpp"
#include "observe/floor_peer.hpp"
#include "observe/floor_sockets.hpp"

namespace fairlead::observe {
namespace {

constexpr std::size_t kReadBytes = 256u << 10;
constexpr std::size_t kWriteBytesMax = 1u << 20;  // a longer message takes several writes
constexpr std::size_t kWritesPerClock = 16;

Result<SocketPair> connected_pair() {
  const base::FileDescriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  base::FileDescriptor near(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener.is_open() || !near.is_open()) return floor_failed("TCP", "make a socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* kernel = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof(address);
  if (::bind(listener.get(), kernel, length) != 0 || ::listen(listener.get(), 1) != 0)
    return floor_failed("TCP", "listen");
  ::getsockname(listener.get(), kernel, &length);
  if (::connect(near.get(), kernel, length) != 0) return floor_failed("TCP", "connect");
  base::FileDescriptor far(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!far.is_open()) return floor_failed("TCP", "accept");
  return SocketPair{std::move(near), std::move(far)};
}

}  // namespace

// Both sides spin on non-blocking calls: a sleeping receiver would halve the sender's rate.
Result<StreamFloor> floor_tcp_stream(const FloorOptions& options) {
  auto pair = connected_pair();
  if (!pair) return std::unexpected(pair.error());
  const std::vector<std::byte> message(std::clamp<std::size_t>(options.bytes, 1, kWriteBytesMax));
  std::vector<std::byte> buffer(kReadBytes);

  const int far = pair->far.get();
  auto peer = FloorPeer::start(options.cpu_near, options.cpu_far, [&](FloorPage& page) {
    std::uint64_t received = 0;
    while (!page.is_over.load(std::memory_order_acquire)) {
      const auto taken = ::recv(far, buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (taken <= 0) continue;
      received += static_cast<std::uint64_t>(taken);
      page.bytes_received.store(received, std::memory_order_release);
    }
  });
  if (!peer) return std::unexpected(peer.error());

  const int near = pair->near.get();
  const double cpu_before = thread_cpu_seconds();
  const auto start = base::MonotonicClock::now();
  auto now = start;
  std::size_t written = 0;  // of the message
  for (std::size_t look = 1; now < start + options.duration; ++look) {
    const auto taken = ::send(near, message.data() + written, message.size() - written, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (taken > 0) written = (written + static_cast<std::size_t>(taken)) % message.size();
    if (look % kWritesPerClock == 0) now = base::MonotonicClock::now();
  }
  StreamFloor floor;
  floor.bytes = peer->page().bytes_received.load(std::memory_order_acquire);
  const double cpu_near = thread_cpu_seconds() - cpu_before;
  const double gigabytes = static_cast<double>(floor.bytes) * 1e-9;
  floor.gb_per_s = gigabytes / std::chrono::duration<double>(now - start).count();
  const double cpu_far = peer->stop();
  if (floor.bytes > 0) floor.cpu_s_per_gb = (cpu_near + cpu_far) / gigabytes;
  return floor;
}

}  // namespace fairlead::observe
