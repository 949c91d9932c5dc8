// The bash completion of packaging/completion, as bash calls it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "tests/child_process.hpp"

namespace fairlead::tests {
namespace {

using testing::Contains;
using testing::Each;
using testing::IsSupersetOf;
using testing::Not;
using testing::StartsWith;
using Words = std::vector<std::string>;

/// What bash offers for the last of these words.
Words offers(const Words& words) {
  const std::string folder = std::filesystem::path(FAIRLEAD_COMMAND).parent_path();
  // compopt is only defined while bash completes.
  const std::string script =
      "PATH=\"$1:$PATH\"; shift; compopt() { echo \"($*)\"; }; source \"$1\"; shift; COMP_WORDS=(\"$@\"); "
      "COMP_CWORD=$(($# - 1)); _fairlead; printf '%s\\n' \"${COMPREPLY[@]}\"";
  Words all{"bash", "-c", script, "bash", folder, FAIRLEAD_SOURCE_FOLDER "/packaging/completion/fairlead"};
  all.insert(all.end(), words.begin(), words.end());
  const Finished finished = run(all);
  EXPECT_EQ(finished.error_output, "");
  Words found;
  std::istringstream lines(finished.output);
  for (std::string line; std::getline(lines, line);)
    if (!line.empty()) found.push_back(line);
  return found;
}

TEST(Completion, OffersSubcommandsOfEachLevel) {
  EXPECT_THAT(offers({"fairlead", ""}), IsSupersetOf({"perf", "run", "doctor"}));
  EXPECT_THAT(offers({"fairlead", "pe"}), testing::ElementsAre("perf"));
  EXPECT_THAT(offers({"fairlead", "perf", ""}), IsSupersetOf({"latency", "bandwidth", "verbs"}));
  EXPECT_THAT(offers({"fairlead", "bulkping", "s"}), testing::ElementsAre("server"));
}

TEST(Completion, OffersTheOptionsOfANestedCommand) {
  const Words options = offers({"fairlead", "perf", "latency", "--"});
  EXPECT_THAT(options, IsSupersetOf({"--path", "--loan", "--report"}));
  EXPECT_THAT(options, Not(Contains("--server"))) << "that is an option of perf";
  EXPECT_THAT(offers({"fairlead", "perf", "--"}), Contains("--server"));
  EXPECT_THAT(offers({"fairlead", "perf", "latency", "--size", "8", "--se"}), testing::ElementsAre("--seconds"));
  EXPECT_THAT(offers({"fairlead", "top", "--o"}), Each(StartsWith("--o")));
}

TEST(Completion, LeavesArgumentsToFileNames) {
  EXPECT_THAT(offers({"fairlead", "keygen", ""}), testing::ElementsAre("(-o default)"));
}

TEST(Completion, KnowsTheDaemon) {
  EXPECT_THAT(offers({"fairleadd", "--"}), Contains("--help"));
  EXPECT_THAT(offers({"fairleadd", "--"}), Not(Contains("--server")));
}

}  // namespace
}  // namespace fairlead::tests
