#include "base/exchange.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

namespace fairlead::base {
namespace {

// The header before each message: a magic number and the length, both in network order.
constexpr std::uint32_t kMagic = 0x464C5831;  // "FLX1"
constexpr std::size_t kHead = 8;

std::array<std::byte, kHead> head_of(std::size_t length) {
  std::array<std::byte, kHead> head;
  const std::uint64_t word = std::uint64_t{kMagic} << 32 | length;
  for (std::size_t i = 0; i < kHead; ++i) head[i] = static_cast<std::byte>(word >> 8 * (kHead - 1 - i));
  return head;
}

std::unexpected<Error> failed(int error, std::string why) {
  return std::unexpected(Error{Status::system, error, std::move(why)});
}

/// The other end's message: the header, then as many bytes as it announces.
class Incoming {
 public:
  bool is_complete() const { return used_ == bytes_.size() && has_head_; }
  /// Returns 0, EAGAIN, or an errno.
  int receive(int socket) {
    while (!is_complete()) {
      const ssize_t got = ::recv(socket, bytes_.data() + used_, bytes_.size() - used_, MSG_DONTWAIT);
      if (got == 0) return ECONNRESET;
      if (got < 0) return errno == EINTR ? 0 : errno;
      used_ += static_cast<std::size_t>(got);
      if (!has_head_ && used_ == kHead) {
        if (const int error = take_head(); error != 0) return error;
      }
    }
    return 0;
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  int take_head() {
    std::uint64_t word = 0;
    for (const std::byte byte : bytes_) word = word << 8 | std::to_integer<std::uint64_t>(byte);
    if (word >> 32 != kMagic) return EPROTO;
    const std::uint32_t length = static_cast<std::uint32_t>(word);
    if (length > kExchangeMost) return EMSGSIZE;
    bytes_.resize(length);
    used_ = 0;
    has_head_ = true;
    return 0;
  }

  std::vector<std::byte> bytes_ = std::vector<std::byte>(kHead);
  std::size_t used_ = 0;
  bool has_head_ = false;
};

std::string meaning_of(int error) {
  switch (error) {
    case ECONNRESET:
      return "the other end closed the connection before it had sent everything";
    case EPROTO:
      return "the other end uses another protocol: both ends have to make the same call";
    case EMSGSIZE:
      return "the other end says more than 64 KiB";
    default:
      return std::string("the connection failed: ") + std::strerror(error);
  }
}

int milliseconds_until(Instant deadline) {
  if (deadline == kNever) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - MonotonicClock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000));
}

}  // namespace

Result<std::vector<std::byte>> exchange(int socket, std::span<const std::byte> own, Instant deadline) {
  if (own.size() > kExchangeMost) return failed(EMSGSIZE, "more than 64 KiB to send");
  const auto head = head_of(own.size());
  std::vector<std::byte> outgoing(head.begin(), head.end());
  outgoing.insert(outgoing.end(), own.begin(), own.end());
  std::size_t sent = 0;
  Incoming incoming;
  while (sent < outgoing.size() || !incoming.is_complete()) {
    if (sent < outgoing.size()) {
      const ssize_t taken = ::send(socket, outgoing.data() + sent, outgoing.size() - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (taken > 0) sent += static_cast<std::size_t>(taken);
      if (taken < 0 && errno != EAGAIN && errno != EINTR) {
        const int error = errno == EPIPE ? ECONNRESET : errno;
        return failed(error, meaning_of(error));
      }
    }
    if (const int error = incoming.receive(socket); error != 0 && error != EAGAIN)
      return failed(error, meaning_of(error));
    if (sent == outgoing.size() && incoming.is_complete()) break;
    const auto wanted =
        static_cast<short>((incoming.is_complete() ? 0 : POLLIN) | (sent < outgoing.size() ? POLLOUT : 0));
    pollfd one{.fd = socket, .events = wanted, .revents = 0};
    const int ready = ::poll(&one, 1, milliseconds_until(deadline));
    if (ready < 0 && errno != EINTR) return failed(errno, meaning_of(errno));
    if (ready == 0 && MonotonicClock::now() >= deadline)
      return failed(ETIMEDOUT, "the other end sent nothing before the deadline: has it made the same call?");
  }
  return incoming.take();
}

}  // namespace fairlead::base
