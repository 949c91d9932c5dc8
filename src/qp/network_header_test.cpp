#include "qp/network_header.hpp"

#include <gtest/gtest.h>

namespace fairlead::qp {
namespace {

TEST(NetworkHeader, OfVersion4StandsBehindAndItsChecksumIsRight) {
  const auto from = *base::SocketAddress::from_ip("10.1.2.3", 1), to = *base::SocketAddress::from_ip("10.1.2.4", 2);
  const auto header = network_header(from, to, 100, 0x20);
  EXPECT_EQ(header[19], std::byte{0});
  EXPECT_EQ(header[20], std::byte{0x45});
  EXPECT_EQ(header[21], std::byte{0x20});
  EXPECT_EQ(header[23], std::byte{120});
  EXPECT_EQ(header[35], std::byte{3});
  EXPECT_EQ(header[39], std::byte{4});
  std::uint32_t sum = 0;
  for (std::size_t i = 20; i < 40; i += 2)
    sum += std::to_integer<std::uint32_t>(header[i]) << 8 | std::to_integer<std::uint32_t>(header[i + 1]);
  EXPECT_EQ((sum & 0xFFFF) + (sum >> 16), 0xFFFFu);
}

TEST(NetworkHeader, OfVersion6HasBothAddresses) {
  const auto from = *base::SocketAddress::from_ip("fd00::3", 1), to = *base::SocketAddress::from_ip("fd00::4", 2);
  const auto header = network_header(from, to, 300, 0x21);
  EXPECT_EQ(header[0], std::byte{0x62});
  EXPECT_EQ(header[1], std::byte{0x10});
  EXPECT_EQ(header[4], std::byte{1});
  EXPECT_EQ(header[5], std::byte{44});
  EXPECT_EQ(header[23], std::byte{3});
  EXPECT_EQ(header[39], std::byte{4});
}

}  // namespace
}  // namespace fairlead::qp
