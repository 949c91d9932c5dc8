// An ICMP message "too big" may be forged: it must not stop existing traffic. Runs in its own network namespace.

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "base/network_namespace.hpp"
#include "path/forged_icmp_for_tests.hpp"
#include "path/udp_path.hpp"

namespace fairlead::path {
namespace {

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
  const std::uint32_t size_before = (*a)->datagram_size_max((*b)->address());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(forge_too_big((*a)->address(), (*b)->address()));

  EXPECT_EQ((*a)->datagram_size_max((*b)->address()), size_before);
  auto newcomer = open();  // has no cached MTU, and asks the kernel
  ASSERT_TRUE(newcomer) << newcomer.error().message;
  EXPECT_EQ((*newcomer)->datagram_size_max((*b)->address()), size_before);
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
  std::array<Unreachable, 4> hints;
  ASSERT_EQ((*a)->unreachable(hints), 1U);
  EXPECT_EQ(hints[0].system_errno, EMSGSIZE);
  EXPECT_EQ(hints[0].size_hint, 552U - 28U) << "somebody says so: a hint, and no more";
}

}  // namespace
}  // namespace fairlead::path
