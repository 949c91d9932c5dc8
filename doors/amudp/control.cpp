#include "doors/amudp/control.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include <fmt/format.h>

namespace fairlead::amudp {

std::string make_secret() {
  std::array<unsigned char, kSecretText / 2> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return {};
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

std::string ip_text(const sockaddr_in& address) {
  std::array<char, INET_ADDRSTRLEN> text{};
  inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
  return text.data();
}

std::optional<JobAddress> JobAddress::parse(std::string_view text) {
  const auto first = text.find(':'), second = text.find(':', first + 1);
  if (first == text.npos || second == text.npos) return std::nullopt;
  JobAddress address;
  address.where.sin_family = AF_INET;
  std::uint16_t port = 0;
  const std::string_view digits = text.substr(first + 1, second - first - 1);
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  address.secret = text.substr(second + 1);
  if (inet_pton(AF_INET, std::string(text.substr(0, first)).c_str(), &address.where.sin_addr) != 1 ||
      code != std::errc() || end != digits.data() + digits.size() || address.secret.empty() ||
      address.secret.size() > kSecretText)
    return std::nullopt;
  address.where.sin_port = htons(port);
  return address;
}

std::string JobAddress::to_string() const {
  return fmt::format("{}:{}:{}", ip_text(where), ntohs(where.sin_port), secret);
}

void set_up_connection(int descriptor) {
  const int on = 1, idle = 2, tries_max = 3;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, &on, sizeof on);
  setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPCNT, &tries_max, sizeof tries_max);
}

std::optional<Connection> Connection::open_once(const sockaddr_in& to) {
  base::FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.is_open() || connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    const int error = errno;
    socket.reset();
    errno = error;
    return std::nullopt;
  }
  set_up_connection(socket.get());
  return Connection(std::move(socket));
}

std::optional<Connection> Connection::open(const sockaddr_in& to) {
  for (int tries = 0; tries < 200; ++tries) {
    if (auto opened = open_once(to)) return opened;
    if (errno != ECONNREFUSED && errno != EINTR) return std::nullopt;
    usleep(50'000);
  }
  return std::nullopt;
}

bool Connection::queue(Frame kind, std::int32_t number, const Payload& payload) {
  const std::size_t length = payload ? payload->size() : 0;
  if (length > kFrameMax || outgoing_bytes_ + length + sizeof(FrameHead) > waiting_max_) {
    is_overfull_ = true;
    return false;
  }
  const FrameHead head{.length = static_cast<std::uint32_t>(length), .kind = kind, .number = number};
  outgoing_.push_back({.head = head, .payload = payload});
  outgoing_bytes_ += outgoing_.back().size();
  return flush();
}

bool Connection::flush() {
  while (!outgoing_.empty()) {
    Outgoing& next = outgoing_.front();
    const std::size_t of_head = std::min(next.sent, sizeof next.head), of_payload = next.sent - of_head;
    std::array<iovec, 2> pieces{{{reinterpret_cast<std::byte*>(&next.head) + of_head, sizeof next.head - of_head}, {}}};
    if (next.payload) {
      pieces[1] = {const_cast<std::byte*>(next.payload->data()) + of_payload, next.payload->size() - of_payload};
    }
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = pieces.size();
    const ssize_t sent = sendmsg(descriptor_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return errno == EAGAIN;
    next.sent += static_cast<std::size_t>(sent);
    outgoing_bytes_ -= static_cast<std::size_t>(sent);
    if (next.sent == next.size()) outgoing_.pop_front();
  }
  return true;
}

bool Connection::send(Frame kind, std::int32_t number, std::span<const std::byte> payload) {
  bool is_open = queue(kind, number, std::make_shared<const std::vector<std::byte>>(payload.begin(), payload.end()));
  while (is_open && has_outgoing()) {
    pollfd look{descriptor_.get(), POLLOUT, 0};
    poll(&look, 1, -1);
    is_open = flush();
  }
  return is_open;
}

bool Connection::read_some() {
  std::array<std::byte, 65536> piece;
  const ssize_t read = recv(descriptor_.get(), piece.data(), piece.size(), MSG_DONTWAIT);
  if (read < 0) return errno == EAGAIN || errno == EINTR;
  taken_.insert(taken_.end(), piece.begin(), piece.begin() + read);
  return read > 0;
}

std::optional<Received> Connection::next(std::uint32_t length_max) {
  Received received;
  if (taken_.size() < sizeof received.head) return std::nullopt;
  std::memcpy(&received.head, taken_.data(), sizeof received.head);
  if (received.head.length > length_max) {
    is_broken_ = true;
    return std::nullopt;
  }
  const std::size_t size = sizeof received.head + received.head.length;
  if (taken_.size() < size) return std::nullopt;
  received.payload.assign(taken_.begin() + sizeof received.head, taken_.begin() + static_cast<std::ptrdiff_t>(size));
  taken_.erase(taken_.begin(), taken_.begin() + static_cast<std::ptrdiff_t>(size));
  return received;
}

bool Connection::stays_on_host() const {
  sockaddr_in other{};
  socklen_t length = sizeof other;
  if (getpeername(descriptor_.get(), reinterpret_cast<sockaddr*>(&other), &length) != 0) return false;
  const bool is_loopback = (ntohl(other.sin_addr.s_addr) >> 24) == IN_LOOPBACKNET;
  return is_loopback || other.sin_addr.s_addr == own_address().sin_addr.s_addr;
}

sockaddr_in Connection::own_address() const {
  sockaddr_in address{};
  socklen_t length = sizeof address;
  getsockname(descriptor_.get(), reinterpret_cast<sockaddr*>(&address), &length);
  return address;
}

}  // namespace fairlead::amudp
