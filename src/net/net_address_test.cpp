#include "net/net_address.hpp"

#include <fairlead/net/address.hpp>

#include <gtest/gtest.h>

#include <algorithm>

namespace fairlead::net {
namespace {

TEST(NetAddress, GoodTextsArePrintedAsTheyWere) {
  for (const std::string_view text : {"10.0.0.5@udp:20480:34:1", "[::1]@udp:1:1:4095", "0@lo:65535:63:12",
                                      "[fe80::1%2]@udp:20480:34:1", "255.255.255.255@udp:1:1:1"}) {
    const auto address = parse_address(text);
    ASSERT_TRUE(address) << text << ": " << address.error().message;
    EXPECT_FALSE(address->has_star());
    EXPECT_EQ(address_text({address->engine, address->port()}), text);
  }
}

TEST(NetAddress, PortHoldsPortalAndTmid) {
  const auto address = parse_address("10.0.0.5@udp:20480:34:7").value();
  EXPECT_EQ(address.port(), 34U * 4096 + 7);
  EXPECT_EQ(address.engine.port, 20480);
  EXPECT_TRUE(address.engine.is_v4());
}

TEST(NetAddress, StarsStandForPidAndTmid) {
  EXPECT_EQ(parse_address("10.0.0.5@udp:20480:34:*").value().tmid, 0U);
  EXPECT_EQ(parse_address("10.0.0.5@udp:*:34:1").value().engine.port, 0);
  EXPECT_TRUE(parse_address("10.0.0.5@udp:*:34:*").value().has_star());
}

TEST(NetAddress, PortalIsJudgedAtTheStart) {
  EXPECT_FALSE(parse_address("0@lo:1:99:1").value().has_good_portal());
  EXPECT_FALSE(parse_address("0@lo:1:0:1").value().has_good_portal());
  EXPECT_TRUE(parse_address("0@lo:1:63:1").value().has_good_portal());
}

TEST(NetAddress, BadTextsAreRefusedWithTheRightForm) {
  const std::string_view bad[] = {
      "",
      ":",
      ":::",
      "::::",
      "10.0.0.5",
      "10.0.0.5@udp",
      "10.0.0.5@udp:",
      "10.0.0.5@udp:20480",
      "10.0.0.5@udp:20480:34",
      "10.0.0.5@udp:20480:34:",
      "10.0.0.5@udp:20480:34:1:",
      "10.0.0.5@udp:20480:34:1:1",
      "10.0.0.5@udp:20480:34:0",
      "10.0.0.5@udp:20480:34:4096",
      "10.0.0.5@udp:20480:34:-1",
      "10.0.0.5@udp:20480:34:+1",
      "10.0.0.5@udp:20480:34: 1",
      "10.0.0.5@udp:20480:34:1 ",
      " 10.0.0.5@udp:20480:34:1",
      "10.0.0.5@udp:20480:34:x",
      "10.0.0.5@udp:20480:34:0x1",
      "10.0.0.5@udp:20480:34:99999999999",
      "10.0.0.5@udp:20480:*:1",
      "10.0.0.5@udp:20480:34:**",
      "10.0.0.5@udp:0:34:1",
      "10.0.0.5@udp:65536:34:1",
      "10.0.0.5@udp::34:1",
      "10.0.0.5@tcp:20480:34:1",
      "10.0.0.5:20480:34:1",
      "10.0.0@udp:20480:34:1",
      "10.0.0.256@udp:20480:34:1",
      "host@udp:20480:34:1",
      "@udp:20480:34:1",
      "*@udp:20480:34:1",
      "0.0.0.0@udp:20480:34:1",
      "[::]@udp:20480:34:1",
      "::1@udp:20480:34:1",
      "[::1@udp:20480:34:1",
      "[::1]:20480:34:1",
      "[10.0.0.5]@udp:20480:34:1",
      "[::g]@udp:20480:34:1",
      "[]@udp:20480:34:1",
      "[::1]]@udp:20480:34:1",
      "1@lo:20480:34:1",
      "0@lo0:20480:34:1",
      "0@lo:20480:34:1\n",
  };
  for (const std::string_view text : bad) {
    const auto address = parse_address(text);
    ASSERT_FALSE(address) << text;
    EXPECT_EQ(address.error().status, Status::invalid) << text;
    EXPECT_NE(address.error().message.find("10.0.0.5@udp:20480:34:1"), std::string::npos) << address.error().message;
  }
  EXPECT_FALSE(parse_address(std::string(1 << 20, ':')));
  EXPECT_FALSE(parse_address(std::string_view("0@lo:20480:34:1\0", 16)));
}

TEST(NetAddress, AHostsNameIsNoAddressButHasOne) {
  for (const char* text : {"localhost:20480", "server", "node-7@udp:20480:34:1"})
    EXPECT_NE(parse_address(text).error().message.find("resolve()"), std::string::npos) << text;
  EXPECT_EQ(parse_address("10.0.0.5@udp:20480:34").error().message.find("resolve()"), std::string::npos);
}

TEST(NetAddress, NidsCompareWhateverTheRest) {
  EXPECT_EQ(compare_nids("10.0.0.5@udp:1:34:1", "10.0.0.5@udp:2:35:*").value(), std::strong_ordering::equal);
  const auto less = compare_nids("10.0.0.5@udp:1:34:1", "10.0.0.6@udp:1:34:1").value();
  const auto greater = compare_nids("10.0.0.6@udp:1:34:1", "10.0.0.5@udp:1:34:1").value();
  EXPECT_NE(less, std::strong_ordering::equal);
  EXPECT_EQ(less == std::strong_ordering::less, greater == std::strong_ordering::greater);
  EXPECT_NE(compare_nids("0@lo:1:34:1", "[::1]@udp:1:34:1").value(), std::strong_ordering::equal);
  EXPECT_EQ(compare_nids("10.0.0.5", "10.0.0.5@udp:1:34:1").error().status, Status::invalid);
  EXPECT_EQ(compare_nids("10.0.0.5@udp:1:34:1", "foo").error().status, Status::invalid);
}

TEST(NetAddress, LocalNidsAreGoodNids) {
  const auto nids = local_nids();
  ASSERT_TRUE(nids);
  EXPECT_EQ(nids->front(), "0@lo");
  for (const std::string& nid : *nids) EXPECT_TRUE(parse_address(nid + ":20480:34:1")) << nid;
}

TEST(NetAddress, NetworksDoNotMix) {
  const auto engine = [](std::string_view text) { return parse_address(text).value().engine; };
  const auto lo = engine("0@lo:1:34:1"), v4 = engine("10.0.0.5@udp:1:34:1"), v6 = engine("[::1]@udp:1:34:1");
  EXPECT_TRUE(is_same_network(lo, engine("0@lo:2:34:1")));
  EXPECT_TRUE(is_same_network(v4, engine("127.0.0.1@udp:2:34:1")));
  EXPECT_TRUE(is_same_network(v6, engine("[fe80::1]@udp:2:34:1")));
  EXPECT_FALSE(is_same_network(lo, v4));
  EXPECT_FALSE(is_same_network(lo, v6));
  EXPECT_FALSE(is_same_network(v4, v6));
}

TEST(NetAddress, HostsWithTheirPidBecomeAddresses) {
  EXPECT_EQ(resolve("10.0.0.5:20480", "34:1").value(), "10.0.0.5@udp:20480:34:1");
  EXPECT_EQ(resolve("[::1]:7", "3:*").value(), "[::1]@udp:7:3:*");
  for (const std::string_view bad :
       {"", "10.0.0.5", "10.0.0.5:", "10.0.0.5:x", "10.0.0.5:70000", "::1:5", "[::1]", "0.0.0.0:5"}) {
    const auto found = resolve(bad, "34:1");
    ASSERT_FALSE(found) << bad;
    EXPECT_EQ(found.error().status, Status::invalid) << bad;
  }
  EXPECT_EQ(resolve("10.0.0.5:20480", "34").error().status, Status::invalid);
  EXPECT_EQ(resolve(":20480", "34:1").error().status, Status::not_available);
}

}  // namespace
}  // namespace fairlead::net
