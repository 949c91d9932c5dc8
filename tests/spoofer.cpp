#include "tests/spoofer.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "tests/forged_packet.hpp"

namespace fairlead::tests {

Spoofer::Spoofer() : socket_(::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW)) {}

void Spoofer::send(const base::SocketAddress& from, const base::SocketAddress& to,
                   std::span<const std::byte> datagram) {
  const auto packet = forged_packet(from, to, datagram);
  sockaddr_in kernel{};
  kernel.sin_family = AF_INET;
  kernel.sin_addr.s_addr = ipv4_of(to);
  const ssize_t sent = ::sendto(socket_.get(), packet.data(), packet.size(), MSG_NOSIGNAL,
                                reinterpret_cast<const sockaddr*>(&kernel), sizeof kernel);
  EXPECT_EQ(sent, static_cast<ssize_t>(packet.size())) << std::strerror(errno);
}

}  // namespace fairlead::tests
