#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <vector>

#include "base/file_descriptor.hpp"
#include "observe/floor.hpp"
#include "observe/floor_meter.hpp"
#include "observe/floor_peer.hpp"
#include "observe/floor_sockets.hpp"

namespace fairlead::observe {
namespace {

constexpr std::size_t kReadBytes = 256u << 10;
constexpr std::size_t kWriteBytesMax = 1u << 20;  // a longer message takes several writes
constexpr std::size_t kWritesPerClock = 16;

Status choose_congestion_control(int socket, const std::string& name) {
  if (name.empty()) return Status::ok;
  const auto length = static_cast<socklen_t>(name.size());
  return ::setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name.data(), length) == 0 ? Status::ok
                                                                                     : Status::not_supported;
}

Result<SocketPair> connected_pair(const FloorOptions& options) {
  sockaddr_in near_address, far_address;
  auto near = open_floor_socket(options.near, SOCK_STREAM, near_address);
  if (!near) return std::unexpected(near.error());
  const auto listener = open_floor_socket(options.far, SOCK_STREAM, far_address);
  if (!listener) return std::unexpected(listener.error());
  for (const int socket : {near->get(), listener->get()}) {
    if (choose_congestion_control(socket, options.congestion_control) != Status::ok) {
      return std::unexpected(Error{Status::not_supported, errno,
                                   fmt::format("this kernel has no TCP congestion control {}: {}",
                                               options.congestion_control, std::strerror(errno))});
    }
    const int on = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  const auto* kernel = reinterpret_cast<const sockaddr*>(&far_address);
  if (::listen(listener->get(), 1) != 0) return floor_failed("TCP", "listen");
  if (::connect(near->get(), kernel, sizeof(far_address)) != 0) return floor_failed("TCP", "connect");
  base::FileDescriptor far(::accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!far.is_open()) return floor_failed("TCP", "accept");
  return SocketPair{std::move(*near), std::move(far)};
}

bool send_whole(int socket, const std::vector<std::byte>& message, const std::function<bool()>& is_over) {
  for (std::size_t sent = 0; sent < message.size();) {
    const auto taken = ::send(socket, message.data() + sent, message.size() - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (taken > 0) sent += static_cast<std::size_t>(taken);
    if (taken <= 0 && is_over()) return false;
  }
  return true;
}

bool receive_whole(int socket, std::vector<std::byte>& message, const std::function<bool()>& is_over) {
  for (std::size_t received = 0; received < message.size();) {
    const auto taken = ::recv(socket, message.data() + received, message.size() - received, MSG_DONTWAIT);
    if (taken > 0) received += static_cast<std::size_t>(taken);
    if (taken <= 0 && is_over()) return false;
  }
  return true;
}

}  // namespace

Result<ExchangeFloor> floor_tcp_exchange(const FloorOptions& options) {
  auto pair = connected_pair(options);
  if (!pair) return std::unexpected(pair.error());
  std::vector<std::byte> message(std::max<std::size_t>(options.bytes, 1));
  const int far = pair->far.get();
  auto peer = FloorPeer::start(options.cpu_near, options.cpu_far, [&](FloorPage& page) {
    const auto is_over = [&page] { return page.is_over.load(std::memory_order_acquire); };
    while (receive_whole(far, message, is_over) && send_whole(far, message, is_over)) {
    }
  });
  if (!peer) return std::unexpected(peer.error());

  const int near = pair->near.get();
  ExchangeMeter meter(options.duration);
  const auto is_over = [end = meter.end()] { return base::MonotonicClock::now() >= end; };
  for (bool is_whole = true; is_whole && !meter.is_over();) {
    is_whole = send_whole(near, message, is_over) && receive_whole(near, message, is_over);
    meter.lap(true);
  }
  return meter.take();
}

// Both sides spin on non-blocking calls: a receiver that sleeps would halve the sender's rate.
Result<StreamFloor> floor_tcp_stream(const FloorOptions& options) {
  auto pair = connected_pair(options);
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
  const std::atomic<std::uint64_t>& arrived = peer->page().bytes_received;
  const StreamMeter meter(options.duration);
  auto now = meter.start();
  std::size_t written = 0;  // of the message
  for (std::size_t look = 1; !meter.is_over(now, arrived.load(std::memory_order_acquire)); ++look) {
    const auto taken = ::send(near, message.data() + written, message.size() - written, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (taken > 0) written = (written + static_cast<std::size_t>(taken)) % message.size();
    if (look % kWritesPerClock == 0) now = base::MonotonicClock::now();
  }
  return meter.end(*peer, now);
}

}  // namespace fairlead::observe
