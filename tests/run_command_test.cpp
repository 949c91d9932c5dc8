// The settings that `fairlead run` passes to the program that it starts.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>

#include "tests/child_process.hpp"

namespace fairlead::tests {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

/// Returns the settings that the program sees.
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

TEST(RunCommand, AFileOfSettingsIsLeftToTheProgramAndMustBeGood) {
  const std::string file = testing::TempDir() + "fairlead_run.toml";
  const auto write = [&](const char* text) {
    std::ofstream(file) << text;
    std::filesystem::permissions(file, std::filesystem::perms(0600));
  };
  write("path = \"udp\"\npersonality = \"ib\"\n");
  EXPECT_EQ(settings_of({"FAIRLEAD_CONFIG=" + file}, {}), "1\n") << "a default in the environment would win";
  EXPECT_EQ(settings_of({"FAIRLEAD_CONFIG=" + file}, {"--path", "shm"}), "shm 1\n");
  write("path = \"udp\"\n\ngiveup = 1\n");
  const Finished wrong = run({"env", "FAIRLEAD_CONFIG=" + file, FAIRLEAD_COMMAND, "run", "--", "echo", "started"});
  std::filesystem::remove(file);
  EXPECT_NE(wrong.exit_code, 0);
  EXPECT_EQ(wrong.output, "");
  EXPECT_THAT(wrong.error_output, HasSubstr(file + ":3: giveup sets nothing: did you mean give_up_after?"));
}

TEST(RunCommand, AnErrorNamesTheOptionThatWasTyped) {
  const Finished finished = run({FAIRLEAD_COMMAND, "run", "--address", "203.0.113.9", "--", "true"});
  EXPECT_NE(finished.exit_code, 0);
  EXPECT_THAT(finished.error_output,
              HasSubstr("no interface of this host has an address of those chosen, 203.0.113.9: correct --address"));
  EXPECT_THAT(finished.error_output, Not(HasSubstr("FAIRLEAD_")));
  const Finished fault =
      run({FAIRLEAD_COMMAND, "run", "--address", "127.0.0.1", "--log", "info", "--fault", "drop=300%", "--", "true"});
  EXPECT_NE(fault.exit_code, 0);
  EXPECT_THAT(fault.error_output,
              AllOf(HasSubstr("fault 'drop=300%': drop takes a share"), HasSubstr("; correct --fault")));
  EXPECT_THAT(fault.error_output, Not(HasSubstr("FAIRLEAD_")));
  EXPECT_THAT(fault.error_output, Not(HasSubstr("--address")));
}

TEST(RunCommand, AFlightLogThatCannotBeOpenedIsToldBeforeTheProgramStarts) {
  const Finished finished = run({FAIRLEAD_COMMAND, "run", "--flight", "/no/such/folder/log", "--", "echo", "started"});
  EXPECT_NE(finished.exit_code, 0);
  EXPECT_EQ(finished.output, "");
  EXPECT_THAT(finished.error_output, HasSubstr("no flight log (--flight): "));
}

TEST(RunCommand, ALogLevelThatIsNoneIsToldBeforeTheProgramStarts) {
  const Finished finished = run({FAIRLEAD_COMMAND, "run", "--log", "loud", "--", "echo", "started"});
  EXPECT_NE(finished.exit_code, 0);
  EXPECT_EQ(finished.output, "");
  EXPECT_THAT(finished.error_output,
              AllOf(HasSubstr("log 'loud': want LEVEL or TOPIC=LEVEL"), HasSubstr("; correct --log")));
}

TEST(RunCommand, OnlyTheProgramsOwnEngineIsLogged) {
  const Finished finished =
      run({FAIRLEAD_COMMAND, "run", "--address", "127.0.0.1", "--log", "info", "--", "echo", "started"});
  EXPECT_EQ(finished.output, "started\n");
  EXPECT_EQ(finished.error_output, "");
}

Finished run_check(const std::string& program, const Words& options = {}) {
  Words words{FAIRLEAD_COMMAND, "run", "--check"};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), {"--", program});
  return run(words);
}

TEST(RunCommandCheck, StartsNothingAndNamesTheDevice) {
  const std::string file = testing::TempDir() + "fairlead_run_started";
  const std::string script = file + ".sh";
  std::ofstream(script) << "#!/bin/sh\ntouch " << file << "\n";
  std::filesystem::permissions(script, std::filesystem::perms(0700));
  const Finished finished = run_check(script, {"--address", "127.0.0.1"});
  std::filesystem::remove(script);
  EXPECT_EQ(finished.exit_code, 0) << finished.output << finished.error_output;
  EXPECT_THAT(finished.output, HasSubstr(script + " is a script; /bin/sh can be given a device"));
  EXPECT_THAT(finished.output, HasSubstr("it does not link libibverbs itself"));
  EXPECT_THAT(finished.output, HasSubstr("at 127.0.0.1"));
  EXPECT_FALSE(std::filesystem::remove(file)) << "it was started";
}

TEST(RunCommandCheck, NamesWhatAProgramWillNeed) {
  const char* const perftest = "/usr/bin/ib_write_bw";
  if (!std::filesystem::exists(perftest)) GTEST_SKIP() << "perftest is not installed";
  const Finished finished = run_check("ib_write_bw");
  EXPECT_EQ(finished.exit_code, 0) << finished.output << finished.error_output;
  EXPECT_THAT(finished.output, HasSubstr(std::string(perftest) + " can be given a device"));
  EXPECT_THAT(finished.output, HasSubstr("libibverbs.so.1: Fairlead's library takes its place"));
  EXPECT_THAT(finished.output, HasSubstr("/dev/infiniband/rdma_cm is simulated"));
  EXPECT_THAT(finished.output, HasSubstr("direct verbs of mlx5: mlx5dv_"));
}

TEST(RunCommandCheck, FailsForAProgramThatGetsNoDevice) {
  const Finished missing = run_check("no-such-program");
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.output, HasSubstr("there is no program no-such-program here"));
  const Finished elsewhere = run_check("true", {"--address", "203.0.113.9"});
  EXPECT_EQ(elsewhere.exit_code, 1);
  EXPECT_THAT(elsewhere.output, HasSubstr("203.0.113.9: correct --address"));
}

TEST(RunCommand, AVariableThatSetsNothingIsTold) {
  const Finished used = run({"env", "FAIRLEAD_GIVEUP=1", FAIRLEAD_COMMAND, "bulkping", "client", "--server",
                             "127.0.0.1", "--message-timeout", "0.1"});
  EXPECT_THAT(used.error_output, HasSubstr("FAIRLEAD_GIVEUP sets nothing: did you mean FAIRLEAD_GIVE_UP_AFTER?"));
}

// Looks at a process that takes no part in it, as an operator does.
TEST(TopCommand, SeesARunningProcessAndNotADeadOne) {
  ChildProcess server({FAIRLEAD_COMMAND, "bulkping", "server", "--address", "127.0.0.1@udp:*"});
  ASSERT_TRUE(server.wait_for_text("serving at", 20s)) << server.error_output();
  const std::string pid = std::to_string(server.pid());
  // Only this process, not the engines of other tests.
  const Finished detail = run({FAIRLEAD_COMMAND, "top", "--once", "--pid", pid});
  EXPECT_EQ(detail.exit_code, 0) << detail.error_output;
  EXPECT_THAT(detail.output, HasSubstr("process " + pid + " (fairlead), engine at 127.0.0.1:"));
  const auto all = nlohmann::json::parse(run({FAIRLEAD_COMMAND, "top", "--json", "--pid", pid}).output);
  ASSERT_EQ(all.at("engines").size(), 1u);
  EXPECT_EQ(all.at("engines")[0].at("pid"), server.pid());
  EXPECT_EQ(all.at("engines")[0].at("program"), "fairlead");
  EXPECT_EQ(all.at("engines")[0].at("ports").size(), 1u);
  EXPECT_THAT(run({FAIRLEAD_COMMAND, "flight", pid}).output, HasSubstr("fairlead at 127.0.0.1:"));
  server.send_signal(SIGKILL);
  EXPECT_EQ(server.wait(20s), 128 + SIGKILL);
  const Finished gone = run({FAIRLEAD_COMMAND, "top", "--once", "--pid", pid});
  EXPECT_EQ(gone.exit_code, 1);
  EXPECT_THAT(gone.error_output, HasSubstr("no process " + pid));
}

TEST(TopCommand, SaysThatAStoppedProcessDoesNotAnswer) {
  ChildProcess server({FAIRLEAD_COMMAND, "bulkping", "server", "--address", "127.0.0.1@udp:*"});
  ASSERT_TRUE(server.wait_for_text("serving at", 20s)) << server.error_output();
  server.send_signal(SIGSTOP);
  const Finished detail = run({FAIRLEAD_COMMAND, "top", "--once", "--pid", std::to_string(server.pid())});
  server.send_signal(SIGCONT);
  // The signal may have stopped it while it answered somebody else.
  EXPECT_THAT(detail.output, testing::AnyOf(HasSubstr("it does not answer: is it stopped?"),
                                            HasSubstr("or stopped in the middle: try again")));
}

}  // namespace
}  // namespace fairlead::tests
