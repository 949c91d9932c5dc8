#include "base/owned_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace fairlead::base {
namespace {

using ::testing::HasSubstr;

class OwnedFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "owned_file_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const char* name) const { return folder_ + "/" + name; }
  std::string file(const char* name, mode_t mode) const {
    std::ofstream(path(name)) << "text";
    EXPECT_EQ(::chmod(path(name).c_str(), mode), 0);
    return path(name);
  }

  std::string folder_;
};

TEST_F(OwnedFile, IsReadIfOnlyItsOwnerCan) {
  EXPECT_EQ(read_owned_file(file("good", 0600), FileTrust::secret).value(), "text");
  EXPECT_EQ(read_owned_file(file("shown", 0644), FileTrust::trusted).value(), "text");
}

TEST_F(OwnedFile, OfOthersIsRefused) {
  EXPECT_THAT(read_owned_file(file("shown", 0644), FileTrust::secret).error().message, HasSubstr("mode 644"));
  EXPECT_THAT(read_owned_file(file("written", 0620), FileTrust::trusted).error().message, HasSubstr("chmod 644"));
  if (::geteuid() == 0) {
    const std::string others = file("others", 0600);
    ASSERT_EQ(::chown(others.c_str(), 4711, 4711), 0);
    EXPECT_THAT(read_owned_file(others, FileTrust::trusted).error().message, HasSubstr("belongs to user 4711"));
  }
}

TEST_F(OwnedFile, ThatIsNoneOfItsOwnIsRefused) {
  const std::string good = file("good", 0600);
  ASSERT_EQ(::symlink(good.c_str(), path("link").c_str()), 0);
  EXPECT_THAT(read_owned_file(path("link"), FileTrust::secret).error().message, HasSubstr("symbolic link"));
  ASSERT_EQ(::link(good.c_str(), path("other").c_str()), 0);
  EXPECT_THAT(read_owned_file(good, FileTrust::secret).error().message, HasSubstr("further names"));
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_THAT(read_owned_file(path("pipe"), FileTrust::secret).error().message, HasSubstr("no regular file"));
  EXPECT_THAT(read_owned_file(folder_, FileTrust::trusted).error().message, HasSubstr("no regular file"));
  EXPECT_EQ(read_owned_file(path("none"), FileTrust::secret).error().system_errno, ENOENT);
}

TEST_F(OwnedFile, IsMadeForItsOwnerAndNeverOverwritten) {
  ASSERT_TRUE(create_secret_file(path("new"), "secret"));
  struct stat is{};
  ASSERT_EQ(::stat(path("new").c_str(), &is), 0);
  EXPECT_EQ(is.st_mode & 0777, 0600U);
  EXPECT_EQ(read_owned_file(path("new"), FileTrust::secret).value(), "secret");
  EXPECT_THAT(create_secret_file(path("new"), "another").error().message, HasSubstr("not overwritten"));
  EXPECT_EQ(read_owned_file(path("new"), FileTrust::secret).value(), "secret");
  ASSERT_TRUE(append_to_file(path("new"), " more"));
  EXPECT_EQ(read_owned_file(path("new"), FileTrust::secret).value(), "secret more");
  EXPECT_FALSE(append_to_file(path("none"), "line"));
}

}  // namespace
}  // namespace fairlead::base
