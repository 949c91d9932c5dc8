#include "base/local_addresses.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace fairlead::base {
namespace {

TEST(LocalAddresses, AreValidAndEachOnce) {
  const auto addresses = local_addresses();
  ASSERT_TRUE(addresses);
  auto sorted = *addresses;
  std::ranges::sort(sorted);
  EXPECT_EQ(std::ranges::adjacent_find(sorted), sorted.end());
  for (const SocketAddress& address : *addresses) {
    EXPECT_EQ(address.port, 0);
    EXPECT_EQ(SocketAddress::from_ip(address.ip_text(), 0).value(), address);
  }
}

}  // namespace
}  // namespace fairlead::base
