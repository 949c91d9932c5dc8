#include "seal/known_peers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "seal/hex.hpp"

namespace fairlead::seal {
namespace {

using ::testing::HasSubstr;

base::SocketAddress at(const char* ip) {
  return *base::SocketAddress::from_ip(ip, 20480);
}
PublicKey filled_with(int value) {
  PublicKey key;
  key.fill(static_cast<std::byte>(value));
  return key;
}
const std::string kOnes(64, '1'), kTwos(64, '2');

TEST(KnownPeers, AKeyIsKnownForItsAddressesOnly) {
  const auto peers = KnownPeers::parse(
      "# mine\n10.0.0.5 x25519 " + kOnes + " db1\n\n10.0.1.0/24,fd00::/64\tx25519 " + kTwos + "\r\n", "peers");
  ASSERT_TRUE(peers) << peers.error().message;
  EXPECT_TRUE(peers->is_known(at("10.0.0.5"), filled_with(0x11)));
  EXPECT_FALSE(peers->is_known(at("10.0.0.6"), filled_with(0x11)));
  EXPECT_FALSE(peers->is_known(at("10.0.0.5"), filled_with(0x22)));
  EXPECT_TRUE(peers->is_known(at("10.0.1.77"), filled_with(0x22)));
  EXPECT_TRUE(peers->is_known(at("fd00::1"), filled_with(0x22)));
  EXPECT_EQ(peers->key_of(at("10.0.2.1"), 0), nullptr);
}

TEST(KnownPeers, SeveralKeysOfAnAddressAreTriedInTurn) {
  const auto peers = KnownPeers::parse("10.0.0.5 x25519 " + kOnes + "\n10.0.0.0/8 x25519 " + kTwos + "\n", "peers");
  ASSERT_TRUE(peers);
  EXPECT_EQ(*peers->key_of(at("10.0.0.5"), 0), filled_with(0x11));
  EXPECT_EQ(*peers->key_of(at("10.0.0.5"), 1), filled_with(0x22));
  EXPECT_EQ(*peers->key_of(at("10.0.0.5"), 2), filled_with(0x11));
  EXPECT_EQ(*peers->key_of(at("10.0.0.9"), 1), filled_with(0x22));
}

TEST(KnownPeers, AnErrorNamesFileAndLine) {
  EXPECT_THAT(KnownPeers::parse("\n10.0.0.5 rsa 11\n", "/etc/peers").error().message, HasSubstr("/etc/peers:2: want"));
  EXPECT_THAT(KnownPeers::parse("db1 x25519 " + kOnes, "p").error().message, HasSubstr("p:1: \"db1\" is no range"));
  EXPECT_THAT(KnownPeers::parse("10.0.0.5 x25519 123", "p").error().message, HasSubstr("64 hexadecimal digits"));
}

TEST(KnownPeers, ItsOwnLineIsRead) {
  const auto peers = KnownPeers::parse(known_peers_line("10.0.0.0/8", filled_with(0xab)), "p");
  ASSERT_TRUE(peers);
  EXPECT_TRUE(peers->is_known(at("10.9.9.9"), filled_with(0xab)));
}

}  // namespace
}  // namespace fairlead::seal
