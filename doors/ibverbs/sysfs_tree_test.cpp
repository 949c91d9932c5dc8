// Where the emulated files go, even if another user occupied that place first.

#include "doors/ibverbs/sysfs_tree.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include <fmt/format.h>

namespace fairlead::ibverbs {
namespace {

namespace fs = std::filesystem;

// A child makes a tree of its own, in the folders that XDG_RUNTIME_DIR names.
class SysfsTree : public testing::Test {
 protected:
  SysfsTree() {
    std::string name = fs::temp_directory_path() / "fairlead_tree_XXXXXX";
    runtime_ = ::mkdtemp(name.data());
    usual_ = runtime_ / fmt::format("fairlead-{}", ::geteuid());
  }
  ~SysfsTree() override { fs::remove_all(runtime_); }

  // Returns the tree of a child, which then exits.
  std::string tree_of_child() const {
    int pipe[2] = {};
    EXPECT_EQ(::pipe(pipe), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::setenv("XDG_RUNTIME_DIR", runtime_.c_str(), 1);
      ::dup2(pipe[1], STDERR_FILENO);
      const std::string tree = sysfs_tree();
      const bool is_there = fs::exists(tree + "/sys/class/infiniband");
      const std::string told = fmt::format("tree {} {}", is_there, tree);
      ::_exit(::write(pipe[1], told.data(), told.size()) > 0 ? 0 : 1);
    }
    ::close(pipe[1]);
    std::string text;
    char letter = 0;
    while (::read(pipe[0], &letter, 1) == 1) text += letter;
    ::close(pipe[0]);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    return text;
  }

  fs::path runtime_, usual_;
};

TEST_F(SysfsTree, LiesInAFolderOfThisUser) {
  const std::string told = tree_of_child();
  EXPECT_TRUE(told.starts_with("tree true " + usual_.string() + "/")) << told;
}

TEST_F(SysfsTree, WhoeverMadeTheFolderFirstIsNamedAndAnotherOneIsUsed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a folder of somebody else";
  fs::create_directory(usual_);
  ASSERT_EQ(::chown(usual_.c_str(), 65534, 65534), 0);
  const std::string told = tree_of_child();
  EXPECT_NE(told.find(usual_.string() + " was made by user 65534"), std::string::npos) << told;
  EXPECT_NE(told.find("tree true " + usual_.string() + "-"), std::string::npos) << told;
  EXPECT_TRUE(fs::is_empty(usual_));
}

TEST_F(SysfsTree, NoLinkIsFollowed) {
  fs::create_directory(runtime_ / "elsewhere");
  fs::create_symlink("elsewhere", usual_);
  const std::string told = tree_of_child();
  EXPECT_NE(told.find("tree true " + usual_.string() + "-"), std::string::npos) << told;
  EXPECT_TRUE(fs::is_empty(runtime_ / "elsewhere"));
}

}  // namespace
}  // namespace fairlead::ibverbs
