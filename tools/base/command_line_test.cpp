#include "tools/base/command_line.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "tools/commands.hpp"

namespace fairlead::tools {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

/// Returns what `--time TEXT` sets; nothing if it is refused.
std::optional<Duration> time_of(const std::string& text) {
  CLI::App app;
  Duration time{};
  add_seconds(app, "--time", time, 0.001, "a time");
  try {
    app.parse("--time " + text);
  } catch (const CLI::ParseError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("--time"), HasSubstr("want 0.001 to 86400 seconds"))) << text;
    return std::nullopt;
  }
  return time;
}

TEST(CommandLine, ATimeIsInSecondsOrHasAUnit) {
  EXPECT_EQ(time_of("5"), 5s);
  EXPECT_EQ(time_of("0.5"), 500ms);
  EXPECT_EQ(time_of("5s"), 5s);
  EXPECT_EQ(time_of("500ms"), 500ms);
  EXPECT_EQ(time_of("2min"), 2min);
  EXPECT_EQ(time_of("24h"), 24h);
  for (const char* text : {"25h", "0", "1us", "5x", "nan", "inf", "s", "1e3", "99999999999999999999"})
    EXPECT_EQ(time_of(text), std::nullopt) << text;
}

// The range of a floating-point number has more than 600 digits.
TEST(CommandLine, AProcessThatIsNoneIsRefusedInOneLine) {
  for (const std::string text : {"0", "-1", "99999999999", "x", "1.5"}) {
    CLI::App app;
    int exit_code = 0;
    add_flight(app, exit_code);
    try {
      app.parse("flight -- " + text);
      ADD_FAILURE() << text;
    } catch (const CLI::ParseError& error) {
      EXPECT_LT(std::string(error.what()).size(), 150U);
      EXPECT_THAT(error.what(), HasSubstr(text));
    }
  }
}

// The command does not take it.
TEST(CommandLine, OptionsDoesNotAdvertiseSet) {
  CLI::App app;
  int exit_code = 0;
  add_options(app, exit_code);
  EXPECT_EQ(app.help().find("--set"), std::string::npos) << app.help();
}

}  // namespace
}  // namespace fairlead::tools
