// A set-user-id program must not take settings from the user who starts it. The test runs a copy of itself that is
// set-user-id root, as another user.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/environment.hpp"
#include "embedded/attach.hpp"
#include "engine/core.hpp"

namespace fairlead::embedded {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kStarter = 65534;

// Runs in the other process, for the test below.
TEST(SetUserId, DISABLED_Privileged) {
  ASSERT_EQ(::geteuid(), 0u);
  ASSERT_EQ(::getuid(), kStarter);
  ASSERT_NE(std::getenv("FAIRLEAD_FLIGHT"), nullptr);
  EXPECT_FALSE(base::may_believe_environment());
  EXPECT_TRUE(base::whole_environment().empty());
  const auto options = engine::EngineOptions::from_environment();
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->flight(), "");
  EXPECT_EQ(options->path(), engine::PathChoice::automatic);
  const auto address = base::SocketAddress::from_ip("127.0.0.1", 0);
  ASSERT_TRUE(address);
  const auto core = attach_embedded(*address, *options);
  ASSERT_TRUE(core) << core.error().message;
}

TEST(SetUserId, TheEnvironmentOfWhoeverStartsItIsNotBelieved) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a program that is set-user-id root";
  std::string name = fs::temp_directory_path() / "fairlead_suid_XXXXXX";
  ASSERT_NE(::mkdtemp(name.data()), nullptr);
  const fs::path folder = name, program = folder / "program", secret = folder / "of_root";
  struct statvfs facts{};
  ASSERT_EQ(::statvfs(name.c_str(), &facts), 0);
  if ((facts.f_flag & ST_NOSUID) != 0) {
    fs::remove_all(folder);
    GTEST_SKIP() << name << " is mounted nosuid";
  }
  fs::copy_file("/proc/self/exe", program);
  fs::create_directory(secret);
  ASSERT_EQ(::chmod(secret.c_str(), 0700), 0);
  ASSERT_EQ(::chmod(name.c_str(), 0755), 0);
  ASSERT_EQ(::chmod(program.c_str(), 04755), 0);
  const std::string made = secret / "made";

  const pid_t starter = ::fork();
  if (starter == 0) {
    ::setenv("FAIRLEAD_FLIGHT", made.c_str(), 1);
    ::setenv("FAIRLEAD_PATH", "udp", 1);
    ::setenv("FAIRLEAD_CONFIG", "/nowhere.toml", 1);
    if (::setgid(kStarter) != 0 || ::setuid(kStarter) != 0 || ::access(secret.c_str(), X_OK) == 0) ::_exit(90);
    ::execl(program.c_str(), program.c_str(), "--gtest_filter=SetUserId.DISABLED_Privileged",
            "--gtest_also_run_disabled_tests", nullptr);
    ::_exit(91);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(starter, &status, 0), starter);
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
  EXPECT_FALSE(fs::exists(made)) << "root made a file where its starter may not";
  fs::remove_all(folder);
}

}  // namespace
}  // namespace fairlead::embedded
