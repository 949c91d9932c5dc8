#include <fairlead/verbs/device.hpp>

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace fairlead::verbs {
namespace {

using testing::HasSubstr;

TEST(Devices, AreChosenByTheFileOfSettingsToo) {
  const std::string file = testing::TempDir() + "fairlead_devices.toml";
  const auto devices_by = [&](const char* text) {
    std::ofstream(file) << text;
    ::chmod(file.c_str(), 0600);
    ::setenv("FAIRLEAD_CONFIG", file.c_str(), 1);
    auto found = devices();
    ::unsetenv("FAIRLEAD_CONFIG");
    return found;
  };
  const auto chosen = devices_by("device = \"127.0.0.1\"\n"), nobody = devices_by("\ndevice = \"203.0.113.1\"\n"),
             wrong = devices_by("device = \n");
  std::filesystem::remove(file);
  ASSERT_TRUE(chosen) << chosen.error().message;
  ASSERT_EQ(chosen->size(), 1U);
  EXPECT_EQ(chosen->front().address, "127.0.0.1");
  ASSERT_FALSE(nobody);
  EXPECT_THAT(nobody.error().message, HasSubstr("203.0.113.1: correct " + file + ":2"));
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr(file + ":1: "));
}

}  // namespace
}  // namespace fairlead::verbs
