#include "seal/keyring.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "base/owned_file.hpp"
#include "seal/hex.hpp"
#include "seal/libcrypto.hpp"
#include "seal/primitives.hpp"

namespace fairlead::seal {
namespace {

using ::testing::HasSubstr;

const std::string kA(64, 'a'), kB(64, 'b');

TEST(KeyFile, TheFirstKeyIsUsedAndAllAreAccepted) {
  const auto keys = parse_key_file("psk " + kA + " now\n# soon:\npsk " + kB + "\n", "file", KeyKind::pre_shared);
  ASSERT_TRUE(keys) << keys.error().message;
  ASSERT_EQ(keys->size(), 2U);
  EXPECT_EQ(to_hex((*keys)[0].bytes()), kA);
  EXPECT_EQ(to_hex((*keys)[1].bytes()), kB);
}

TEST(KeyFile, AnErrorNamesTheLineAndNeverTheKey) {
  const auto wrong = parse_key_file("psk " + kA + "\npsk " + kB + "b\n", "file", KeyKind::pre_shared);
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("file:2:"));
  EXPECT_THAT(wrong.error().message, ::testing::Not(HasSubstr("bbbb")));
  EXPECT_THAT(parse_key_file("# nothing\n", "file", KeyKind::x25519).error().message,
              HasSubstr("fairlead keygen FILE"));
  EXPECT_FALSE(parse_key_file("psk " + kA, "file", KeyKind::x25519));
}

TEST(KeyFile, ItsOwnLineIsRead) {
  const auto keys = parse_key_file("psk " + kA, "file", KeyKind::pre_shared);
  ASSERT_TRUE(keys);
  for (const KeyKind kind : {KeyKind::pre_shared, KeyKind::x25519})
    EXPECT_EQ(to_hex(parse_key_file(key_file_line(keys->front(), kind), "file", kind).value().front().bytes()), kA);
}

class KeyringFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(load_libcrypto());
    std::string name = (std::filesystem::temp_directory_path() / "keyring_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
};

TEST_F(KeyringFilesTest, TheKnownPeersLieBesideTheKey) {
  ASSERT_TRUE(base::create_secret_file(folder_ + "/key", "x25519-secret " + kA + "\n"));
  const auto files = KeyringFiles::parse("x25519:" + folder_ + "/key", "");
  ASSERT_TRUE(files);
  EXPECT_EQ(files->peers, folder_ + "/known_peers");
  EXPECT_THAT(files->read().error().message, HasSubstr("known_peers: cannot open it"));
  std::ofstream(folder_ + "/known_peers") << "10.0.0.0/8 x25519 " << kB << "\n";
  const auto ring = files->read();
  ASSERT_TRUE(ring) << ring.error().message;
  EXPECT_EQ(ring->kind, KeyKind::x25519);
  EXPECT_EQ(ring->public_keys.front(), public_key_of(ring->keys.front()));
  EXPECT_NE(ring->peers.key_of(*base::SocketAddress::from_ip("10.1.1.1", 1), 0), nullptr);
  EXPECT_EQ(KeyringFiles::parse("x25519:key", "/etc/peers")->peers, "/etc/peers");
}

TEST_F(KeyringFilesTest, ASecretNeedsItsFileAlone) {
  ASSERT_TRUE(base::create_secret_file(folder_ + "/psk", "psk " + kA + "\n"));
  const auto ring = KeyringFiles::parse("psk:" + folder_ + "/psk", "")->read();
  ASSERT_TRUE(ring) << ring.error().message;
  EXPECT_EQ(ring->kind, KeyKind::pre_shared);
  EXPECT_EQ(ring->keys.size(), 1U);
}

TEST(KeyringFiles, OtherWordsAreRefused) {
  for (const char* text : {"", "psk", "psk:", "x25519:", "x25519x", "tls:file"})
    EXPECT_THAT(KeyringFiles::parse(text, "").error().message, HasSubstr("want psk:FILE")) << text;
}

}  // namespace
}  // namespace fairlead::seal
