#include "doors/amudp/control.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

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

Connection::~Connection() {
  if (descriptor_ >= 0) close(descriptor_);
}

std::optional<Connection> Connection::open(const sockaddr_in& to) {
  // Rank 0 of a job without a console may not listen yet.
  for (int tries = 0; tries < 200; ++tries) {
    const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return std::nullopt;
    if (connect(descriptor, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) {
      set_up_connection(descriptor);
      return Connection(descriptor);
    }
    const int error = errno;
    close(descriptor);
    errno = error;
    if (error != ECONNREFUSED && error != EINTR) return std::nullopt;
    usleep(50'000);
  }
  return std::nullopt;
}

bool Connection::send(Frame kind, std::int32_t number, std::span<const std::byte> payload) {
  const FrameHead head{.length = static_cast<std::uint32_t>(payload.size()), .kind = kind, .number = number};
  return send_all(std::as_bytes(std::span(&head, 1)), payload.empty() ? 0 : MSG_MORE) && send_all(payload, 0);
}

bool Connection::send_all(std::span<const std::byte> bytes, int flags) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL | flags);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
  return true;
}

bool Connection::read_some() {
  std::array<std::byte, 65536> piece;
  const ssize_t read = recv(descriptor_, piece.data(), piece.size(), MSG_DONTWAIT);
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

sockaddr_in Connection::own_address() const {
  sockaddr_in address{};
  socklen_t length = sizeof address;
  getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &length);
  return address;
}

}  // namespace fairlead::amudp
