// An ICMP message "too big" may come from anybody: what it says must not stop what goes on. In a network of the test's
// own.

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <vector>

#include "base/network_namespace.hpp"
#include "path/udp_path.hpp"

namespace fairlead::path {
namespace {

bool bring_up_loopback() {
  const base::FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strncpy(request.ifr_name, "lo", sizeof request.ifr_name - 1);
  if (::ioctl(socket.get(), SIOCGIFFLAGS, &request) != 0) return false;
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
  return ::ioctl(socket.get(), SIOCSIFFLAGS, &request) == 0;
}

std::uint16_t internet_checksum(const std::byte* bytes, std::size_t size) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i + 1 < size; i += 2) {
    std::uint16_t word = 0;
    std::memcpy(&word, bytes + i, sizeof word);
    sum += word;
  }
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

/// Says to `from` that what it sends to `to` is too long for a link of 552 bytes.
bool forge_too_big(const base::SocketAddress& from, const base::SocketAddress& to) {
  struct {
    icmphdr icmp;
    iphdr ip;
    udphdr udp;
  } lie{};
  lie.icmp.type = ICMP_DEST_UNREACH;
  lie.icmp.code = ICMP_FRAG_NEEDED;
  lie.icmp.un.frag.mtu = htons(552);
  lie.ip.version = 4;
  lie.ip.ihl = 5;
  lie.ip.tot_len = htons(1428);
  lie.ip.protocol = IPPROTO_UDP;
  lie.ip.saddr = lie.ip.daddr = htonl(INADDR_LOOPBACK);
  lie.udp.source = htons(from.port);
  lie.udp.dest = htons(to.port);
  lie.icmp.checksum = internet_checksum(reinterpret_cast<const std::byte*>(&lie), sizeof lie);
  const base::FileDescriptor raw(::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP));
  sockaddr_in victim{};
  victim.sin_family = AF_INET;
  victim.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return raw.is_open() && ::sendto(raw.get(), &lie, sizeof lie, 0, reinterpret_cast<const sockaddr*>(&victim),
                                   sizeof victim) == static_cast<ssize_t>(sizeof lie);
}

TEST(UdpForgedIcmp, TooBigStopsNeitherTrafficNorNewPeers) {
  auto network = base::make_network();
  if (!network) GTEST_SKIP() << network.error().message;
  auto visit = base::NetworkVisit::enter(network->get());
  ASSERT_TRUE(visit) << visit.error().message;
  ASSERT_TRUE(bring_up_loopback());
  const auto open = [] { return UdpPath::open({.local = *base::SocketAddress::from_ip("127.0.0.1", 0)}); };
  auto a = open(), b = open();
  ASSERT_TRUE(a) << a.error().message;
  ASSERT_TRUE(b) << b.error().message;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(forge_too_big((*a)->address(), (*b)->address()));

  EXPECT_GE((*a)->datagram_size_max((*b)->address()), 1200U);
  std::vector<std::byte> bytes(1400, std::byte{7});
  const iovec piece{bytes.data(), bytes.size()};
  const Train train{.to = (*b)->address(), .pieces = {&piece, 1}, .datagram_size = 1400};
  std::array<Arrival, 4> arrivals;
  for (int sent = 0; sent < 3; ++sent) {
    ASSERT_EQ((*a)->send({&train, 1}, {}), 1U);
    ASSERT_EQ((*b)->collect(arrivals, {}), 1U) << sent;  // the loopback delivers at once
    EXPECT_EQ(arrivals[0].bytes.size(), 1400U);
  }
  EXPECT_EQ((*a)->counters().send_too_big, 0U);
}

}  // namespace
}  // namespace fairlead::path
