#include "tools/base/address.hpp"

#include <gtest/gtest.h>

namespace fairlead::tools {
namespace {

TEST(BulkpingAddress, FillsInWhatIsLeftOut) {
  const AddressDefaults client{.pid = "*", .portal = "40", .tmid = "*"};
  EXPECT_EQ(complete_address("10.0.0.5", {}).value(), "10.0.0.5@udp:20480:39:12");
  EXPECT_EQ(complete_address("10.0.0.5@udp", client).value(), "10.0.0.5@udp:*:40:*");
  EXPECT_EQ(complete_address("10.0.0.5@udp:7", client).value(), "10.0.0.5@udp:7:40:*");
  EXPECT_EQ(complete_address("10.0.0.5@udp:7:1:2", client).value(), "10.0.0.5@udp:7:1:2");
  EXPECT_EQ(complete_address("[::1]", {}).value(), "[::1]@udp:20480:39:12");
  EXPECT_EQ(complete_address("[::1]:5000", {}).value(), "[::1]@udp:5000:39:12");
  EXPECT_EQ(complete_address("0@lo", {}).value(), "0@lo:20480:39:12");
}

TEST(BulkpingAddress, IPv6NeedsNoBrackets) {
  EXPECT_EQ(complete_address("::1", {}).value(), "[::1]@udp:20480:39:12");
  EXPECT_EQ(complete_address("fd88::1", {}).value(), "[fd88::1]@udp:20480:39:12");
  EXPECT_EQ(complete_address("fd88::1@udp:5000", {}).value(), "[fd88::1]@udp:5000:39:12");
}

TEST(BulkpingAddress, AServerIsAHostWithAPort) {
  EXPECT_EQ(look_up_server("10.0.0.5", 7).value().to_string(), "10.0.0.5:7");
  EXPECT_EQ(look_up_server("10.0.0.5:5000", 7).value().to_string(), "10.0.0.5:5000");
  EXPECT_EQ(look_up_server("::1", 7).value().to_string(), "[::1]:7");
  EXPECT_EQ(look_up_server("[::1]:5000", 7).value().to_string(), "[::1]:5000");
  EXPECT_EQ(look_up_server("localhost:5000", 7).value().to_string(), "127.0.0.1:5000");
  for (const char* bad : {"", "10.0.0.5:0", "10.0.0.5:65536", "10.0.0.5:", "10.0.0.5@udp", "[::1", "10.0.0.5:1:2"})
    EXPECT_FALSE(look_up_server(bad, 7)) << bad;
}

TEST(BulkpingAddress, ANameIsLookedUp) {
  EXPECT_EQ(look_up_address("localhost", {}).value(), "127.0.0.1@udp:20480:39:12");
  EXPECT_EQ(look_up_address("localhost:5000", {}).value(), "127.0.0.1@udp:5000:39:12");
  EXPECT_EQ(look_up_address("localhost@udp:5000:1:2", {}).value(), "127.0.0.1@udp:5000:1:2");
  const auto unknown = look_up_address("no..such", {});  // no name server is asked for such a name
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().status, Status::not_available);
  EXPECT_NE(unknown.error().message.find("is the name right?"), std::string::npos) << unknown.error().message;
}

TEST(BulkpingAddress, RefusesWhatIsNone) {
  for (const char* text : {"", "@", ":", "10.0.0", "10.0.0.5@tcp", "10.0.0.5@udp:", "10.0.0.5@udp:0",
                           "10.0.0.5@udp:65536", "10.0.0.5@udp:1:1:4096", "10.0.0.5@udp:1:1:1:1", "[::1", "fd88::zz",
                           "localhost@tcp", "10.0.0.5@udp:-1", "10.0.0.5@udp: 1", "10.0.0.256"}) {
    const auto address = complete_address(text, {});
    ASSERT_FALSE(address) << text << " gave " << *address;
    EXPECT_EQ(address.error().status, Status::invalid) << text;
  }
}

TEST(BulkpingAddress, TheOwnNidTowardsLoopbackIsLoopback) {
  EXPECT_EQ(nid_towards("127.0.0.1@udp:20480:39:12").value(), "127.0.0.1@udp");
  EXPECT_EQ(nid_towards("0@lo:20480:39:12").value(), "0@lo");
}

}  // namespace
}  // namespace fairlead::tools
