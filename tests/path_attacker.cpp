#include "tests/path_attacker.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>

namespace fairlead::tests {
namespace {

class KernelAddress {
 public:
  explicit KernelAddress(const base::SocketAddress& address) : length_(address.to_kernel(generic(), AF_INET)) {}
  sockaddr* generic() { return reinterpret_cast<sockaddr*>(&room_); }
  unsigned length() const { return length_; }

 private:
  sockaddr_in6 room_{};
  unsigned length_;
};

}  // namespace

PathAttacker::PathAttacker(const std::array<base::SocketAddress, 2>& engines) {
  for (std::size_t i = 0; i < 2; ++i) {
    Side& side = sides_[i];
    side.engine = engines[i];
    side.socket = base::FileDescriptor(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    constexpr int kRoom = 4 << 20;
    ::setsockopt(side.socket.get(), SOL_SOCKET, SO_RCVBUF, &kRoom, sizeof kRoom);
    KernelAddress own(*base::SocketAddress::from_ip("127.0.0.1", 0));
    EXPECT_EQ(::bind(side.socket.get(), own.generic(), own.length()), 0);
    sockaddr_in6 bound{};
    socklen_t length = sizeof bound;
    EXPECT_EQ(::getsockname(side.socket.get(), reinterpret_cast<sockaddr*>(&bound), &length), 0);
    side.address = *base::SocketAddress::from_kernel(reinterpret_cast<const sockaddr*>(&bound), length);
  }
}

void PathAttacker::send(std::size_t to, std::span<const std::byte> bytes) {
  KernelAddress address(sides_[to].engine);
  // A datagram that exceeds the socket's buffer is lost, as on any path.
  (void)::sendto(sides_[to].socket.get(), bytes.data(), bytes.size(), 0, address.generic(), address.length());
}

bool PathAttacker::take(std::size_t from) {
  buffer_.resize(65'536);
  const ssize_t size = ::recv(sides_[from].socket.get(), buffer_.data(), buffer_.size(), 0);
  buffer_.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  return size >= 0;
}

}  // namespace fairlead::tests
