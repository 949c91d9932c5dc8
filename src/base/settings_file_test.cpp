#include "base/settings_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace fairlead::base {
namespace {

using testing::HasSubstr;

TEST(SettingsFile, HasNumbersAndTextsWithTheirLines) {
  const auto file =
      SettingsFile::parse("# why\npath = \"udp\"\n\n\"ack_delay\" = 1_000\nlog='info' # more\n", "a.toml");
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->all().size(), 3U);
  EXPECT_EQ(file->all()[0].name, "path") << "in the order of their lines";
  EXPECT_EQ(file->all()[2].where, "a.toml:5");
  ASSERT_NE(file->find("ack_delay"), nullptr);
  EXPECT_EQ(file->find("ack_delay")->text, "1000");
  EXPECT_EQ(file->find("ack_delay")->where, "a.toml:4");
  EXPECT_EQ(file->find("delay"), nullptr);
  EXPECT_TRUE(SettingsFile::parse("", "a.toml")->all().empty());
  const auto foreign =
      SettingsFile::parse("\xEF\xBB\xBF# gr\xC3\xBC\xC3\x9F\r\nflight = \"/tmp/\xC3\xA4#\" # \"\xC3\xA4\r\n", "a.toml");
  ASSERT_TRUE(foreign) << foreign.error().message;
  EXPECT_EQ(foreign->find("flight")->text, "/tmp/\xC3\xA4#");
}

TEST(SettingsFile, NamesTheLineThatIsWrong) {
  struct WrongFile {
    std::string text;
    const char* message;
  };
  const WrongFile rows[] = {
      {"path = udp\n", "a.toml:1: "},
      {"path = \"udp\n", "a.toml:1: "},
      {"\n\npath\n", "a.toml:3: "},
      {"path = \"udp\"\npath = \"shm\"\n", "a.toml:2: "},
      {"path = \"\xff\"\n", "a.toml:1: "},
      {"\n[engine]\npath = \"udp\"\n",
       "a.toml:2: want NAME = VALUE, a whole number or a text in quotes; there are no tables"},
      {"path.of = \"udp\"\n", "a.toml:1: path takes"},
      {"spin = 1.5\n", "a.toml:1: spin takes"},
      {"spin = true\n", "a.toml:1: spin takes"},
      {"spin = [1]\n", "a.toml:1: want NAME"},
      {"spin = 2026-01-01\n", "a.toml:1: spin takes"},
      {"spin = 99999999999999999999\n", "a.toml:1: "},
      {"flight = \"a\\u0000b\"\n", "a.toml:1: flight takes"},
      {"flight = \"a\\nb\"\n", "a.toml:1: flight takes"},
      {"\"\\u001b[31m\" = 1.5\n", "a.toml:1: ?[31m takes"},
      {"path = \"udp\" \xC3\xA4\n", "a.toml:1: want NAME = VALUE"},
      {"a = 'x'\n\xD0\x96 = 1", "a.toml:2: want NAME"},
      {"a = \"x\\\"\" \xC3\xA4\n", "a.toml:1: want NAME"},
      {"path = \"\"\"\nudp\"\"\"\n", "a.toml:1: a text of several lines"},
      {"path = '''\nudp'''\n", "a.toml:1: a text of several lines"},
      {"\nx = \"" + std::string(5000, 'x') + "\"\n", "a.toml:2: a line of more than 4096 bytes"},
      {"x = " + std::string(4000, '[') + "\n", "a.toml:1: "},
  };
  for (const WrongFile& row : rows) {
    const auto file = SettingsFile::parse(row.text, "a.toml");
    ASSERT_FALSE(file) << row.text.substr(0, 40);
    EXPECT_EQ(file.error().status, Status::invalid);
    EXPECT_THAT(file.error().message, HasSubstr(row.message));
  }
}

// Each level is a nested table, which the parser makes and frees by recursion.
TEST(SettingsFile, BearsNamesAsDeepAsALineIsLong) {
  std::string deep = "a";
  while (deep.size() < 4080) deep += ".a";
  EXPECT_THAT(SettingsFile::parse(deep + " = 1\n", "a.toml").error().message, HasSubstr("a.toml:1: a takes"));
  for (int i = 0; i < 6; ++i) deep += "." + deep;
  EXPECT_THAT(SettingsFile::parse(deep + " = 1", "a.toml").error().message, HasSubstr("4096"));
}

TEST(SettingsFile, IsAPlainFileThatNobodyElseWrites) {
  std::string name = std::filesystem::temp_directory_path() / "settings_file_XXXXXX";
  ASSERT_NE(::mkdtemp(name.data()), nullptr);
  const std::string good = name + "/good.toml", shared = name + "/shared.toml", pipe = name + "/pipe",
                    huge = name + "/huge.toml";
  std::ofstream(good) << "spin = 7\n";
  EXPECT_EQ(SettingsFile::read(good)->find("spin")->where, good + ":1");
  std::ofstream(shared) << "spin = 7\n";
  ASSERT_EQ(::chmod(shared.c_str(), 0666), 0);
  EXPECT_THAT(SettingsFile::read(shared).error().message, HasSubstr("lets others write it"));
  std::ofstream(huge) << std::string((1 << 20) + 1, '#');
  EXPECT_THAT(SettingsFile::read(huge).error().message, HasSubstr("more than 1048576"));
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(SettingsFile::read(pipe).error().message, HasSubstr("no regular file"));
  EXPECT_THAT(SettingsFile::read(name).error().message, HasSubstr("no regular file"));
  EXPECT_THAT(SettingsFile::read(name + "/none\x1b[31m").error().message, HasSubstr("none?[31m: cannot open it"));
  std::filesystem::remove_all(name);
}

}  // namespace
}  // namespace fairlead::base
