#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/file_descriptor.hpp"
#include "observe/floor.hpp"
#include "observe/floor_meter.hpp"
#include "observe/floor_peer.hpp"
#include "observe/floor_sockets.hpp"

namespace fairlead::observe {
namespace {

constexpr int kBufferBytes = 4 << 20;
constexpr std::size_t kTrainBytesMax = 65'507;
constexpr std::size_t kTrainDatagramsMax = 64;
constexpr std::size_t kLooksPerClock = 256;  // receive or send calls between two readings of the clock
constexpr base::Duration kLostAfter = std::chrono::milliseconds(200);

Result<base::FileDescriptor> bound_socket(const FloorEnd& end, sockaddr_in& address) {
  auto socket = open_floor_socket(end, SOCK_DGRAM | SOCK_NONBLOCK, address);
  if (!socket) return socket;
  ::setsockopt(socket->get(), SOL_SOCKET, SO_RCVBUF, &kBufferBytes, sizeof(kBufferBytes));
  ::setsockopt(socket->get(), SOL_SOCKET, SO_SNDBUF, &kBufferBytes, sizeof(kBufferBytes));
  return socket;
}

// Datagrams have `bytes`, at most the datagram size. Longer messages leave as trains, cut by the size set once on the
// socket.
Result<SocketPair> connected_pair(const FloorOptions& options, std::uint32_t bytes) {
  std::array<sockaddr_in, 2> addresses{};
  auto near = bound_socket(options.near, addresses[0]);
  auto far = near ? bound_socket(options.far, addresses[1]) : std::unexpected(near.error());
  if (!far) return std::unexpected(far.error());
  const std::array<int, 2> sockets{near->get(), far->get()};
  for (std::size_t side = 0; side < 2; ++side) {
    const auto* peer = reinterpret_cast<const sockaddr*>(&addresses[1 - side]);
    if (::connect(sockets[side], peer, sizeof(addresses[0])) != 0) return floor_failed("UDP", "connect a socket");
    if (bytes <= options.datagram_size) continue;
    const int cut = static_cast<int>(std::min(options.bytes, options.datagram_size));
    const int on = 1;
    if (::setsockopt(sockets[side], IPPROTO_UDP, UDP_SEGMENT, &cut, sizeof(cut)) != 0 ||
        ::setsockopt(sockets[side], IPPROTO_UDP, UDP_GRO, &on, sizeof(on)) != 0)
      return floor_failed("UDP", "turn on GSO and GRO");
  }
  return SocketPair{std::move(*near), std::move(*far)};
}

std::size_t train_bytes(std::uint32_t datagram_size) {
  return std::min(kTrainDatagramsMax, kTrainBytesMax / datagram_size) * datagram_size;
}

void send_message(int socket, const std::vector<std::byte>& train, std::size_t bytes) {
  for (std::size_t sent = 0; sent < bytes;) {
    const std::size_t length = std::min(train.size(), bytes - sent);
    if (::send(socket, train.data(), length, MSG_NOSIGNAL) >= 0) sent += length;
  }
}

/// Receives a message; returns false if the run ended, or a part of it was lost.
bool receive_message(int socket, std::vector<std::byte>& buffer, std::size_t bytes, const std::atomic<bool>& is_over) {
  base::Instant deadline = base::kNever;
  std::size_t received = 0;
  for (std::size_t look = 1; received < bytes; ++look) {
    const auto length = ::recv(socket, buffer.data(), buffer.size(), 0);
    if (length > 0) received += static_cast<std::size_t>(length);
    if (look % kLooksPerClock != 0) continue;
    const auto now = base::MonotonicClock::now();
    if (deadline == base::kNever) deadline = now + kLostAfter;
    if (is_over.load(std::memory_order_acquire) || now > deadline) return false;
  }
  return true;
}

bool is_sane(const FloorOptions& options) {
  return options.bytes > 0 && options.bytes <= 1u << 30 && options.datagram_size > 0 &&
         options.datagram_size <= kTrainBytesMax;
}

std::unexpected<Error> insane(const FloorOptions& options) {
  return std::unexpected(Error{Status::invalid, 0,
                               fmt::format("floor of {} bytes in datagrams of {}: choose 1 to 1073741824 and 1 to {}",
                                           options.bytes, options.datagram_size, kTrainBytesMax)});
}

}  // namespace

Result<ExchangeFloor> floor_udp_exchange(const FloorOptions& options) {
  if (!is_sane(options)) return insane(options);
  auto pair = connected_pair(options, options.bytes);
  if (!pair) return std::unexpected(pair.error());
  const std::size_t bytes = options.bytes;
  const std::vector<std::byte> train(std::min(bytes, train_bytes(options.datagram_size)));
  std::vector<std::byte> buffer(65'536);

  const int far = pair->far.get();
  auto peer = FloorPeer::start(options.cpu_near, options.cpu_far, [&](FloorPage& page) {
    while (!page.is_over.load(std::memory_order_acquire))
      if (receive_message(far, buffer, bytes, page.is_over)) send_message(far, train, bytes);
  });
  if (!peer) return std::unexpected(peer.error());

  const int near = pair->near.get();
  ExchangeMeter meter(options.duration);
  while (!meter.is_over()) {
    send_message(near, train, bytes);
    meter.lap(receive_message(near, buffer, bytes, peer->page().is_over));
  }
  return meter.take();
}

Result<StreamFloor> floor_udp_stream(const FloorOptions& options) {
  if (!is_sane(options)) return insane(options);
  const std::uint32_t datagram_size = std::min(options.bytes, options.datagram_size);
  const std::size_t length = train_bytes(datagram_size);
  auto pair = connected_pair(options, static_cast<std::uint32_t>(length));
  if (!pair) return std::unexpected(pair.error());
  const std::vector<std::byte> train(length);
  std::vector<std::byte> buffer(65'536);

  const int far = pair->far.get();
  auto peer = FloorPeer::start(options.cpu_near, options.cpu_far, [&](FloorPage& page) {
    std::uint64_t received = 0;
    while (!page.is_over.load(std::memory_order_acquire)) {
      const auto taken = ::recv(far, buffer.data(), buffer.size(), 0);
      if (taken <= 0) continue;
      received += static_cast<std::uint64_t>(taken);
      page.bytes_received.store(received, std::memory_order_release);
    }
  });
  if (!peer) return std::unexpected(peer.error());

  const std::atomic<std::uint64_t>& arrived = peer->page().bytes_received;
  const int near = pair->near.get();
  const StreamMeter meter(options.duration);
  auto now = meter.start();
  auto moved_at = now;
  std::uint64_t sent = 0;
  std::uint64_t lost = 0;
  std::uint64_t seen = 0;
  for (std::size_t look = 1; !meter.is_over(now, seen); ++look) {
    const std::uint64_t received = arrived.load(std::memory_order_acquire);
    if (sent + length <= received + lost + options.in_flight_bytes || sent == received + lost)
      sent += ::send(near, train.data(), length, MSG_NOSIGNAL) >= 0 ? length : 0;
    if (look % kLooksPerClock != 0) continue;
    now = base::MonotonicClock::now();
    if (received != seen) moved_at = now;
    if (now > moved_at + kLostAfter) lost = sent - received;  // datagrams were dropped: continue without them
    seen = received;
  }
  return meter.end(*peer, now);
}

}  // namespace fairlead::observe
