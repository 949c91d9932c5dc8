// What `fairlead run` tells the program that it starts.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/child_process.hpp"

namespace fairlead::tests {
namespace {

using testing::HasSubstr;
using Words = std::vector<std::string>;

/// The three settings as the program sees them.
std::string settings_of(const Words& environment, const Words& options) {
  Words words{"env", "-u", "FAIRLEAD_PATH", "-u", "FAIRLEAD_PERSONALITY", "-u", "FAIRLEAD_DEVICES"};
  words.insert(words.end(), environment.begin(), environment.end());
  words.insert(words.end(), {FAIRLEAD_COMMAND, "run"});
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(),
               {"--", "sh", "-c", "echo $FAIRLEAD_PATH $FAIRLEAD_PERSONALITY $FAIRLEAD_DEVICES $FAIRLEAD_FAULT"});
  const Finished finished = run(words);
  EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
  return finished.output;
}

TEST(RunCommand, AnOptionWinsOverTheEnvironmentAndThatOverTheDefault) {
  EXPECT_EQ(settings_of({}, {}), "auto roce 1\n");
  const Words environment{"FAIRLEAD_PATH=udp", "FAIRLEAD_PERSONALITY=ib", "FAIRLEAD_DEVICES=3"};
  EXPECT_EQ(settings_of(environment, {}), "udp ib 3\n");
  EXPECT_EQ(settings_of(environment, {"--path", "shm", "--devices", "2"}), "shm ib 2\n");
  EXPECT_EQ(settings_of({"FAIRLEAD_PATH="}, {}), "auto roce 1\n") << "set to nothing is not set";
}

TEST(RunCommand, AnErrorNamesTheOptionThatWasTyped) {
  const Finished finished = run({FAIRLEAD_COMMAND, "run", "--address", "203.0.113.9", "--", "true"});
  EXPECT_NE(finished.exit_code, 0);
  EXPECT_THAT(finished.error_output, HasSubstr("--address 203.0.113.9"));
}

TEST(RunCommand, AFlightLogThatCannotBeOpenedIsToldBeforeTheProgramStarts) {
  const Finished finished = run({FAIRLEAD_COMMAND, "run", "--flight", "/no/such/folder/log", "--", "echo", "started"});
  EXPECT_NE(finished.exit_code, 0);
  EXPECT_EQ(finished.output, "");
  EXPECT_THAT(finished.error_output, HasSubstr("--flight /no/such/folder/log"));
}

TEST(RunCommand, ALogLevelThatIsNoneIsToldBeforeTheProgramStarts) {
  const Finished finished = run({FAIRLEAD_COMMAND, "run", "--log", "loud", "--", "echo", "started"});
  EXPECT_NE(finished.exit_code, 0);
  EXPECT_EQ(finished.output, "");
  EXPECT_THAT(finished.error_output, HasSubstr("--log loud (FAIRLEAD_LOG): log 'loud': want LEVEL or TOPIC=LEVEL"));
}

TEST(RunCommand, AVariableThatSetsNothingIsTold) {
  const Finished used = run({"env", "FAIRLEAD_GIVEUP=1", FAIRLEAD_COMMAND, "bulkping", "client", "--server",
                             "127.0.0.1", "--message-timeout", "0.1"});
  EXPECT_THAT(used.error_output, HasSubstr("FAIRLEAD_GIVEUP sets nothing: did you mean FAIRLEAD_GIVE_UP_AFTER?"));
}

}  // namespace
}  // namespace fairlead::tests
