// Sending: a lone datagram by the cheapest call, a train as one message that the kernel cuts, or datagram by datagram
// where the kernel cannot. Figures of the calls: docs/udp-path.md.

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/ensure.hpp"
#include "base/thread_sanitizer.hpp"
#include "path/udp_socket.hpp"

namespace fairlead::path {
namespace {

// Up to this size copying the pieces together costs less than letting the kernel gather them (150 ns).
constexpr std::size_t kGatherMax = 2048;
constexpr std::size_t kPiecesMax = 1024;  // the kernel's limit for one message

bool is_later(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}
// A queue, a device or a firewall of this host dropped it. That is a loss like one on the wire. Reported as
// back-pressure, it would make the link retry for ever, and nothing would ever be judged too long or too much.
bool is_lost(int error) {
  return error == ENOBUFS || error == ENOMEM || error == EPERM;
}

std::size_t total_bytes(std::span<const iovec> pieces) {
  std::size_t bytes = 0;
  for (const iovec& piece : pieces) bytes += piece.iov_len;
  return bytes;
}

struct Target {
  sockaddr_storage storage;
  socklen_t length = 0;

  sockaddr* kernel() { return length == 0 ? nullptr : reinterpret_cast<sockaddr*>(&storage); }
};

}  // namespace

// The kernel may report an earlier datagram's error instead of sending this one. It does so once, so a second try shows
// the result of this datagram.
template <typename Call>
int UdpSocket::transmit_call(Call call, PathCounters& counters) {
  counters.send_calls += 1;
  if (call() >= 0) [[likely]]
    return 0;
  if (is_later(errno) || is_lost(errno)) return errno;
  has_errors_ = true;
  return call() >= 0 ? 0 : errno;
}

UdpSocket::Sent UdpSocket::send(const Train& train, PathCounters& counters, int& error) {
  const std::size_t bytes = total_bytes(train.pieces);
  ENSURE(train.datagram_size > 0 && train.pieces.size() <= kPiecesMax, "train of {} pieces, datagram size {}",
         train.pieces.size(), train.datagram_size);
  base::release_unseen();
  error = transmit(train, bytes, counters);
  if (error == 0) [[likely]]
    return Sent::done;
  if (is_later(error)) return Sent::later;
  if (is_lost(error)) return Sent::lost;
  return error == EMSGSIZE ? Sent::too_big : Sent::failed;
}

int UdpSocket::transmit(const Train& train, std::size_t bytes, PathCounters& counters) {
  if (bytes <= train.datagram_size) {
    if (train.pieces.size() > 1 && bytes > kGatherMax) return transmit_singly(train, bytes, counters);
    const int error = transmit_single(train, bytes, counters);
    if (error == 0) [[likely]] {
      counters.datagrams_sent += 1;
      counters.bytes_sent += bytes;
    }
    return error;
  }
  if (facts_.has_gso) [[likely]] {
    const int error = transmit_merged(train, counters);
    if (error == 0) [[likely]] {
      counters.datagrams_sent += (bytes + train.datagram_size - 1) / train.datagram_size;
      counters.bytes_sent += bytes;
    }
    // EIO: the device cannot cut. EINVAL: older kernels report it for a datagram beyond the MTU.
    if (error != EIO && error != EINVAL) return error;
    facts_.gso_refused += 1;
  }
  return has_room(train, bytes) ? transmit_singly(train, bytes, counters) : EAGAIN;
}

int UdpSocket::transmit_single(const Train& train, std::size_t bytes, PathCounters& counters) {
  std::array<std::byte, kGatherMax> gathered;
  const void* data = nullptr;
  if (train.pieces.size() == 1) {
    data = train.pieces[0].iov_base;
  } else {
    std::size_t filled = 0;
    for (const iovec& piece : train.pieces) {
      std::memcpy(gathered.data() + filled, piece.iov_base, piece.iov_len);
      filled += piece.iov_len;
    }
    data = gathered.data();
  }
  const int number = descriptor_.get();
  if (is_connected_) return transmit_call([&] { return ::send(number, data, bytes, MSG_NOSIGNAL); }, counters);
  Target target;
  target.length = train.to.to_kernel(reinterpret_cast<sockaddr*>(&target.storage), family_);
  if (target.length == 0) return EAFNOSUPPORT;
  return transmit_call([&] { return ::sendto(number, data, bytes, MSG_NOSIGNAL, target.kernel(), target.length); },
                       counters);
}

int UdpSocket::transmit_merged(const Train& train, PathCounters& counters) {
  Target target;
  if (!is_connected_) {
    target.length = train.to.to_kernel(reinterpret_cast<sockaddr*>(&target.storage), family_);
    if (target.length == 0) return EAFNOSUPPORT;
  }
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(std::uint16_t))> control{};
  msghdr message{};
  message.msg_name = target.kernel();
  message.msg_namelen = target.length;
  message.msg_iov = const_cast<iovec*>(train.pieces.data());
  message.msg_iovlen = train.pieces.size();
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* entry = CMSG_FIRSTHDR(&message);
  entry->cmsg_level = IPPROTO_UDP;
  entry->cmsg_type = UDP_SEGMENT;
  entry->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
  const auto cut = static_cast<std::uint16_t>(train.datagram_size);
  std::memcpy(CMSG_DATA(entry), &cut, sizeof(cut));
  return transmit_call([&] { return ::sendmsg(descriptor_.get(), &message, MSG_NOSIGNAL); }, counters);
}

// Returns whether the whole train fits into the send buffer. A train sent singly that stops in the middle is repeated
// from its start; with a nearly full buffer that would go on for ever. The estimate is the most that the kernel
// charges.
bool UdpSocket::has_room(const Train& train, std::size_t bytes) const {
  int queued = 0;
  if (::ioctl(descriptor_.get(), SIOCOUTQ, &queued) != 0) return true;
  const std::size_t datagrams = bytes / train.datagram_size + 1;
  return static_cast<std::size_t>(queued) + 2 * bytes + datagrams * 1024 <=
             std::size_t{2} * facts_.send_buffer_granted ||
         queued == 0;
}

// Cuts the train here, with one call per datagram. Several datagrams per call were no faster: the cost is per datagram.
int UdpSocket::transmit_singly(const Train& train, std::size_t bytes_left, PathCounters& counters) {
  Target target;
  if (!is_connected_) {
    target.length = train.to.to_kernel(reinterpret_cast<sockaddr*>(&target.storage), family_);
    if (target.length == 0) return EAFNOSUPPORT;
  }
  std::array<iovec, kPiecesMax> slices;
  std::size_t piece = 0;
  std::size_t offset = 0;  // within the piece
  int loss = 0;
  while (bytes_left > 0) {
    std::size_t slice_count = 0;
    std::size_t bytes = 0;
    while (bytes_left > 0 && bytes < train.datagram_size) {
      const iovec& from = train.pieces[piece];
      const std::size_t length = std::min(from.iov_len - offset, train.datagram_size - bytes);
      slices[slice_count++] = {static_cast<std::byte*>(from.iov_base) + offset, length};
      bytes += length;
      bytes_left -= length;
      offset += length;
      if (offset == from.iov_len) {
        piece += 1;
        offset = 0;
      }
    }
    msghdr message{};
    message.msg_name = target.kernel();
    message.msg_namelen = target.length;
    message.msg_iov = slices.data();
    message.msg_iovlen = slice_count;
    const int error = transmit_call([&] { return ::sendmsg(descriptor_.get(), &message, MSG_NOSIGNAL); }, counters);
    if (is_lost(error)) {
      loss = error;
      continue;
    }
    if (error != 0) return error;
    counters.datagrams_sent += 1;
    counters.bytes_sent += bytes;
  }
  return loss;
}

}  // namespace fairlead::path
