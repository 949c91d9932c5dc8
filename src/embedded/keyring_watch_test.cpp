#include "embedded/keyring_watch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/owned_file.hpp"
#include "seal/libcrypto.hpp"

namespace fairlead::embedded {
namespace {

class KeyringWatchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(seal::load_libcrypto());
    std::string name = (std::filesystem::temp_directory_path() / "keyring_watch_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path() const { return folder_ + "/psk"; }
  static std::string line(char digit) { return "psk " + std::string(64, digit) + "\n"; }

  std::string folder_;
};

TEST_F(KeyringWatchTest, ReadsTheFilesAgainWhenTheyHaveChanged) {
  ASSERT_TRUE(base::create_secret_file(path(), line('a')));
  KeyringWatch watch(*seal::KeyringFiles::parse("psk:" + path(), ""));
  std::string complaint;
  base::Instant now{};
  EXPECT_TRUE(watch.is_due(now));
  EXPECT_EQ(watch.next(now, complaint), nullptr) << "nothing has changed";
  EXPECT_FALSE(watch.is_due(now));
  now += KeyringWatch::kLookEvery;
  ASSERT_TRUE(base::append_to_file(path(), line('b')));
  const auto ring = watch.next(now, complaint);
  ASSERT_NE(ring, nullptr) << complaint;
  EXPECT_EQ(ring->keys.size(), 2U);
  EXPECT_EQ(watch.next(now, complaint), nullptr);
  EXPECT_EQ(complaint, "");
}

TEST_F(KeyringWatchTest, ComplainsOnceOfWhatCannotBeRead) {
  ASSERT_TRUE(base::create_secret_file(path(), line('a')));
  KeyringWatch watch(*seal::KeyringFiles::parse("psk:" + path(), ""));
  std::string complaint;
  ASSERT_EQ(::chmod(path().c_str(), 0644), 0);
  EXPECT_EQ(watch.next({}, complaint), nullptr);
  EXPECT_THAT(complaint, ::testing::HasSubstr("chmod 600"));
  complaint.clear();
  EXPECT_EQ(watch.next({}, complaint), nullptr);
  EXPECT_EQ(complaint, "");
  ASSERT_EQ(::chmod(path().c_str(), 0600), 0);
  EXPECT_NE(watch.next({}, complaint), nullptr);
}

}  // namespace
}  // namespace fairlead::embedded
