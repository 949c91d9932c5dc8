#include "base/host_name.hpp"

#include <gtest/gtest.h>

namespace fairlead::base {
namespace {

// No other names: looking them up may send datagrams.
TEST(HostName, DigitsAreTheirOwnName) {
  for (const std::string text : {"127.0.0.1", "10.1.2.3", "::1", "fd00::7"}) {
    const auto found = addresses_of_host(text);
    ASSERT_TRUE(found) << text;
    ASSERT_EQ(found->size(), 1U);
    EXPECT_EQ((*found)[0], SocketAddress::from_ip(text, 0).value());
  }
}

TEST(HostName, NoNameHasNoAddress) {
  const auto found = addresses_of_host("");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().status, Status::not_available);
  EXPECT_NE(found.error().message.find("host \"\""), std::string::npos) << found.error().message;
}

}  // namespace
}  // namespace fairlead::base
