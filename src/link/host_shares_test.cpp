#include "link/host_shares.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <vector>

namespace fairlead::link {
namespace {

struct Guest {
  base::SocketAddress address;
  ListHook hook;
};
using Shares = HostShares<Guest, &Guest::hook>;

class HostSharesTest : public ::testing::Test {
 protected:
  Guest& guest(std::uint8_t host, std::uint16_t port) {
    Guest& made = guests_.emplace_back();
    made.address.ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, host};
    made.address.port = port;
    return made;
  }

  std::deque<Guest> guests_;  // outlive the shares, or unlink themselves
  Shares shares_{{1, 2}};
};

TEST_F(HostSharesTest, TheOldestOfTheHostThatHoldsMostGivesWay) {
  EXPECT_EQ(shares_.oldest_of_largest(), nullptr);
  Guest &lone = guest(1, 1), &first = guest(2, 1), &second = guest(2, 2);
  shares_.add(lone);
  EXPECT_EQ(shares_.oldest_of_largest(), &lone);
  shares_.add(first);
  shares_.add(second);
  EXPECT_EQ(shares_.oldest_of_largest(), &first);
  EXPECT_EQ(shares_.oldest_of(lone.address), &lone);
  EXPECT_EQ(shares_.size_of(second.address), 2U);
  shares_.remove(first);
  shares_.remove(first);
  EXPECT_EQ(shares_.oldest_of(first.address), &second);
  EXPECT_EQ(shares_.size(), 2U);
  EXPECT_EQ(shares_.oldest_of_largest(), &lone);  // as many, and for longer
}

TEST_F(HostSharesTest, WhoIsPassedOverComesLastOfThoseThatHoldAsMuch) {
  std::vector<Guest*> all;
  for (std::uint8_t host = 1; host <= 2; ++host) {
    for (std::uint16_t port = 1; port <= 2; ++port) shares_.add(*all.emplace_back(&guest(host, port)));
  }
  std::vector<Guest*> seen;
  for (int i = 0; i < 4; ++i) {
    seen.push_back(shares_.oldest_of_largest());
    shares_.pass_over(*seen.back());
  }
  EXPECT_EQ(seen, (std::vector<Guest*>{all[0], all[2], all[1], all[3]}));
  EXPECT_EQ(shares_.size(), 4U);
}

TEST_F(HostSharesTest, AHostWithNothingIsForgotten) {
  Guest& only = guest(1, 1);
  for (int i = 0; i < 10; ++i) {
    shares_.add(only);
    shares_.remove(only);
  }
  EXPECT_EQ(shares_.oldest_of(only.address), nullptr);
  EXPECT_EQ(shares_.oldest_of_largest(), nullptr);
  EXPECT_EQ(shares_.size_of(only.address), 0U);
}

TEST_F(HostSharesTest, TheLargestIsTheLargestWhateverComesAndGoes) {
  std::mt19937_64 random(1);
  std::vector<Guest*> in;
  for (int i = 0; i < 3000; ++i) {
    if (random() % 3 != 0 || in.empty()) {
      in.push_back(&guest(static_cast<std::uint8_t>(random() % 8), static_cast<std::uint16_t>(i)));
      shares_.add(*in.back());
    } else {
      const std::size_t out = random() % in.size();
      shares_.remove(*in[out]);
      in.erase(in.begin() + static_cast<std::ptrdiff_t>(out));
    }
    std::size_t most = 0;
    for (Guest* guest : in) most = std::max(most, shares_.size_of(guest->address));
    ASSERT_EQ(shares_.size(), in.size());
    if (!in.empty()) ASSERT_EQ(shares_.size_of(shares_.oldest_of_largest()->address), most);
  }
}

TEST_F(HostSharesTest, AnIPv6NetworkIsOneHostAndAnIPv4AddressIs) {
  const auto host = [](const char* ip) { return base::SocketAddress::from_ip(ip, 1)->host(); };
  EXPECT_EQ(host("2001:db8::1"), host("2001:db8::ffff:2"));
  EXPECT_NE(host("2001:db8::1"), host("2001:db8:0:1::1"));
  EXPECT_NE(host("10.0.0.1"), host("10.0.0.2"));
  EXPECT_NE(host("::1"), host("::2"));
  EXPECT_NE(host("fe80::1%2"), host("fe80::1%3"));
}

}  // namespace
}  // namespace fairlead::link
