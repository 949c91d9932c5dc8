// Receiving: recv() or recvfrom() in lone mode, recvmsg() with the size of merged datagrams in merging mode.

#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/thread_sanitizer.hpp"
#include "path/udp_socket.hpp"

namespace fairlead::path {
namespace {

constexpr std::size_t kRunIsBulk = 3;       // arrivals in one run from which merging is worth its control message
constexpr std::uint32_t kLoneIsOver = 256;  // lone arrivals in a row after which it is not
constexpr int kReportsMax = 2;              // errors of earlier datagrams that may precede an arrival

base::SocketAddress sender_of(const sockaddr_storage& storage) {
  base::SocketAddress sender;
  if (storage.ss_family == AF_INET6) [[unlikely]] {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage);
    std::memcpy(sender.ip.data(), &v6.sin6_addr, 16);
    sender.scope = v6.sin6_scope_id;
    sender.port = ntohs(v6.sin6_port);
    return sender;
  }
  const auto& v4 = reinterpret_cast<const sockaddr_in&>(storage);
  sender.ip[10] = sender.ip[11] = 0xff;
  std::memcpy(sender.ip.data() + 12, &v4.sin_addr, 4);
  sender.port = ntohs(v4.sin_port);
  return sender;
}

}  // namespace

UdpSocket::Received UdpSocket::receive(std::span<std::byte> buffer, Arrival& arrival) {
  long length = -1;
  for (int report = 0; report <= kReportsMax; ++report) {
    length = is_merging_ ? receive_merged(buffer, arrival) : receive_lone(buffer, arrival);
    if (length >= 0) [[likely]]
      break;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return Received::nothing;
    has_errors_ = true;
  }
  if (length < 0) return Received::nothing;
  base::acquire_unseen();
  if (static_cast<std::size_t>(length) > buffer.size()) [[unlikely]]
    return Received::truncated;
  arrival.bytes = buffer.first(static_cast<std::size_t>(length));
  if (arrival.datagram_size == 0) arrival.datagram_size = std::max(1u, static_cast<std::uint32_t>(length));
  return Received::arrival;
}

// MSG_TRUNC makes the kernel return the datagram's true length, even if the buffer is shorter.
long UdpSocket::receive_lone(std::span<std::byte> buffer, Arrival& arrival) {
  arrival.datagram_size = 0;
  if (is_connected_) {
    arrival.from = peer_;
    return ::recv(descriptor_.get(), buffer.data(), buffer.size(), MSG_TRUNC);
  }
  sockaddr_storage sender;
  socklen_t size = sizeof(sender);
  const long length = ::recvfrom(descriptor_.get(), buffer.data(), buffer.size(), MSG_TRUNC,
                                 reinterpret_cast<sockaddr*>(&sender), &size);
  if (length >= 0) arrival.from = sender_of(sender);
  return length;
}

long UdpSocket::receive_merged(std::span<std::byte> buffer, Arrival& arrival) {
  sockaddr_storage sender;
  iovec piece{buffer.data(), buffer.size()};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> control;
  msghdr message{};
  if (!is_connected_) {
    message.msg_name = &sender;
    message.msg_namelen = sizeof(sender);
  }
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const long length = ::recvmsg(descriptor_.get(), &message, MSG_TRUNC);
  if (length < 0) return length;
  arrival.from = is_connected_ ? peer_ : sender_of(sender);
  arrival.datagram_size = 0;
  if (const cmsghdr* entry = CMSG_FIRSTHDR(&message);
      entry != nullptr && entry->cmsg_level == IPPROTO_UDP && entry->cmsg_type == UDP_GRO) {
    int merged_by = 0;
    std::memcpy(&merged_by, CMSG_DATA(entry), sizeof(merged_by));
    arrival.datagram_size = static_cast<std::uint32_t>(merged_by);
  }
  const bool is_lone = arrival.datagram_size == 0 || arrival.datagram_size >= static_cast<std::uint32_t>(length);
  lone_in_row_ = is_lone ? lone_in_row_ + 1 : 0;
  return length;
}

void UdpSocket::end_run(std::size_t arrivals, bool was_emptied) {
  if (!facts_.has_gro) return;
  if (!is_merging_) {
    if (arrivals >= kRunIsBulk) is_merging_ = merge(true);
    return;
  }
  if (arrivals >= kRunIsBulk) lone_in_row_ = 0;
  if (lone_in_row_ < kLoneIsOver || !was_emptied || !merge(false)) return;
  // Datagrams that arrived since the last call may be merged, and lone mode could not tell. Then merging mode stays.
  is_merging_ = !is_empty() && merge(true);
  lone_in_row_ = 0;
}

bool UdpSocket::is_empty() const {
  std::byte probe;
  return ::recv(descriptor_.get(), &probe, sizeof(probe), MSG_PEEK) < 0 && errno == EAGAIN;
}

bool UdpSocket::merge(bool is_merging) {
  const int value = is_merging ? 1 : 0;
  return ::setsockopt(descriptor_.get(), IPPROTO_UDP, UDP_GRO, &value, sizeof(value)) == 0;
}

}  // namespace fairlead::path
