// An ICMP message "too big" may be forged: it must not stop existing traffic. Others tell why a datagram does not
// arrive. Runs in network namespaces of its own.

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "base/network_namespace.hpp"
#include "path/forged_icmp_for_tests.hpp"
#include "path/udp_path.hpp"

namespace fairlead::path {
namespace {

class UdpForgedIcmp : public ::testing::Test {
 protected:
  void SetUp() override {
    auto network = base::make_network();
    if (!network) GTEST_SKIP() << network.error().message;
    auto visit = base::NetworkVisit::enter(network->get());
    ASSERT_TRUE(visit) << visit.error().message;
    visit_.emplace(std::move(*visit));
    ASSERT_TRUE(bring_up_loopback());
  }
  static auto open() { return UdpPath::open({.local = *base::SocketAddress::from_ip("127.0.0.1", 0)}); }

 private:
  std::optional<base::NetworkVisit> visit_;
};

TEST_F(UdpForgedIcmp, TooBigStopsNeitherTrafficNorNewPeers) {
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

// The errno of a firewall's rejection is that of a missing route.
TEST_F(UdpForgedIcmp, AFirewallsRejectionIsTold) {
  auto path = open();
  ASSERT_TRUE(path) << path.error().message;
  const auto peer = *base::SocketAddress::from_ip("127.0.0.2", 20480);
  std::array<Arrival, 4> none;
  std::array<Unreachable, 4> hints;
  for (const auto& [code, is_firewall] : {std::pair{ICMP_NET_ANO, true},
                                          {ICMP_HOST_ANO, true},
                                          {ICMP_PKT_FILTERED, true},
                                          {ICMP_HOST_UNREACH, false},
                                          {ICMP_PORT_UNREACH, false}}) {
    ASSERT_TRUE(forge_unreachable((*path)->address(), peer, static_cast<std::uint8_t>(code)));
    EXPECT_EQ((*path)->collect(none, {}), 0U);
    ASSERT_EQ((*path)->unreachable(hints), 1U) << code;
    EXPECT_EQ(hints[0].to, peer);
    EXPECT_EQ(hints[0].is_prohibited, is_firewall) << code;
    EXPECT_FALSE(hints[0].is_local) << "anybody may have sent it";
  }
}

TEST_F(UdpForgedIcmp, WhatTheOwnKernelRefusesIsCertain) {
  auto path = open();
  ASSERT_TRUE(path) << path.error().message;
  std::byte byte{};
  const iovec piece{&byte, 1};
  const Train train{.to = *base::SocketAddress::from_ip("10.0.0.5", 20480), .pieces = {&piece, 1}, .datagram_size = 1};
  EXPECT_EQ((*path)->send({&train, 1}, {}), 1U);
  std::array<Unreachable, 4> hints;
  ASSERT_EQ((*path)->unreachable(hints), 1U);
  EXPECT_TRUE(hints[0].is_local && !hints[0].is_prohibited);
  EXPECT_NE(hints[0].system_errno, 0);
}

}  // namespace
}  // namespace fairlead::path
