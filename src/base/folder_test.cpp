// Files that others have prepared as traps: links, pipes, their own folders. For root the other users are real.

#include "base/folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace fairlead::base {
namespace {

using testing::AllOf;
using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr uid_t kSomebody = 65534;

class Folders : public testing::Test {
 protected:
  Folders() {
    std::string name = fs::temp_directory_path() / "fairlead_folder_XXXXXX";
    root_ = ::mkdtemp(name.data());
  }
  ~Folders() override { fs::remove_all(root_); }

  std::string path(const std::string& name) const { return root_ / name; }
  static std::string refusal(const std::string& path) {
    const auto file = open_to_append(path);
    return file ? "taken" : file.error().message;
  }
  static std::string content(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // Another user's folder; needs root.
  std::string of_somebody(const std::string& name) const {
    fs::create_directory(path(name));
    EXPECT_EQ(::chown(path(name).c_str(), kSomebody, kSomebody), 0);
    return path(name);
  }

  fs::path root_;
};

TEST_F(Folders, ALogIsMadeForUsAloneAndAppendedTo) {
  for (const char* text : {"one", "two"}) {
    const auto file = open_to_append(path("log"));
    ASSERT_TRUE(file) << file.error().message;
    ASSERT_EQ(::write(file->get(), text, 3), 3);
  }
  EXPECT_EQ(content(path("log")), "onetwo");
  EXPECT_EQ(fs::status(path("log")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(Folders, NoStepOfAPathIsALink) {
  fs::create_directory(path("real"));
  std::ofstream(path("real/file")) << "as it was";
  fs::create_symlink("real/file", path("link"));
  fs::create_symlink("real", path("folder"));
  EXPECT_THAT(refusal(path("link")), AllOf(HasSubstr("link is a symbolic link"), HasSubstr("name the file")));
  EXPECT_THAT(refusal(path("folder/new")), AllOf(HasSubstr("folder is a link"), HasSubstr("name the folder")));
  EXPECT_EQ(content(path("real/file")), "as it was");
  EXPECT_FALSE(fs::exists(path("real/new")));
  EXPECT_THAT(refusal(path("missing/log")), HasSubstr("missing: No such file"));
}

// A pipe without a reader would block for ever; a second name may belong to an important file.
TEST_F(Folders, OnlyAPlainFileWithOneNameIsAppendedTo) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_THAT(refusal(path("pipe")), HasSubstr("pipe"));
  fs::create_directory(path("folder"));
  EXPECT_THAT(refusal(path("folder")), HasSubstr("Is a directory"));
  std::ofstream(path("precious")) << "x";
  fs::create_hard_link(path("precious"), path("second"));
  EXPECT_THAT(refusal(path("second")), HasSubstr("second hard link"));
  EXPECT_THAT(refusal("/dev/null"), HasSubstr("is not a plain file"));
}

TEST_F(Folders, WhereEverybodyMayPutAnotherFolderNothingIsOpened) {
  fs::create_directories(path("open/inner"));
  fs::permissions(path("open"), fs::perms::all);
  EXPECT_THAT(refusal(path("open/inner/log")), HasSubstr("open may be changed by everybody"));
  fs::permissions(path("open"), fs::perms::all | fs::perms::sticky_bit);
  EXPECT_EQ(refusal(path("open/inner/log")), "taken");
}

TEST_F(Folders, OfOthersAreNotUsed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a folder of somebody else";
  of_somebody("theirs");
  EXPECT_THAT(refusal(path("theirs/log")), HasSubstr("theirs belongs to user 65534"));
  std::ofstream(path("file")) << "x";
  ASSERT_EQ(::chown(path("file").c_str(), kSomebody, kSomebody), 0);
  EXPECT_THAT(refusal(path("file")), HasSubstr("file belongs to user 65534"));
  EXPECT_EQ(content(path("file")), "x");
}

TEST_F(Folders, APrivateOneIsTheSameAgain) {
  std::string complaint;
  for (int i = 0; i < 2; ++i) {
    const auto folder = private_folder(root_, "ours", complaint);
    ASSERT_TRUE(folder) << folder.error().message;
    EXPECT_EQ(folder->path, path("ours"));
    EXPECT_FALSE(folder->is_temporary);
  }
  EXPECT_EQ(complaint, "");
  EXPECT_EQ(fs::status(path("ours")).permissions(), fs::perms::owner_all);
}

TEST_F(Folders, WhoeverComesFirstIsToldAndAPrivateOneIsFoundAllTheSame) {
  fs::create_directory(path("elsewhere"));
  fs::create_symlink("elsewhere", path("link"));
  fs::create_directory(path("loose"));
  fs::permissions(path("loose"), fs::perms::owner_all | fs::perms::others_read);
  std::vector<std::string> names{"link", "loose"};
  if (::geteuid() == 0) names.push_back(fs::path(of_somebody("theirs")).filename());
  for (const std::string& name : names) {
    std::string complaint;
    const auto folder = private_folder(root_, name, complaint);
    ASSERT_TRUE(folder) << folder.error().message;
    EXPECT_TRUE(folder->is_temporary);
    EXPECT_TRUE(folder->path.starts_with(path(name) + "-")) << folder->path;
    EXPECT_EQ(fs::status(folder->path).permissions(), fs::perms::owner_all);
    EXPECT_THAT(complaint, AllOf(HasSubstr(path(name)), HasSubstr(folder->path)));
    if (name == "theirs") {
      EXPECT_THAT(complaint, HasSubstr("was made by user 65534"));
    }
  }
  EXPECT_TRUE(fs::is_empty(path("elsewhere")));
}

}  // namespace
}  // namespace fairlead::base
