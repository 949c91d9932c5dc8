// The completions of packaging/completion, as bash and zsh call them.

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

struct Shell {
  const char *name, *file;
  const char* script;  // with the folder of the commands, the file, then the words; prints what is offered
};

// compopt, compadd and _default are only defined while the shell completes.
constexpr Shell kBash{"bash", "/fairlead",
                      R"sh(PATH="$1:$PATH"; shift; compopt() { echo "($*)"; }; source "$1"; shift; COMP_WORDS=("$@")
       COMP_CWORD=$(($# - 1)); _fairlead; printf '%s\n' "${COMPREPLY[@]}")sh"};
constexpr Shell kZsh{
    "zsh", "/_fairlead",
    R"sh(path=("$1" $path); functions[complete]=$(<$2); words=("${@:3}"); CURRENT=$#words; PREFIX=$words[-1]
       compadd() { for each in "${@:2}"; do [[ $each != $PREFIX* ]] || print -r -- $each; done }
       _default() { print "(-o default)"; }
       _normal() { print "(normal $CURRENT $words)"; }
       complete)sh"};

class Completion : public testing::TestWithParam<Shell> {
 protected:
  void SetUp() override {
    if (!is_installed(GetParam().name)) GTEST_SKIP() << GetParam().name << " is not installed";
  }
  /// What the shell offers for the last of these words.
  static Words offers(const Words& words);
};

Words Completion::offers(const Words& words) {
  const std::string folder = std::filesystem::path(FAIRLEAD_COMMAND).parent_path();
  const std::string file = std::string(FAIRLEAD_SOURCE_FOLDER "/packaging/completion") + GetParam().file;
  Words all{GetParam().name, "-c", GetParam().script, GetParam().name, folder, file};
  all.insert(all.end(), words.begin(), words.end());
  const Finished finished = run(all);
  EXPECT_EQ(finished.error_output, "");
  Words found;
  std::istringstream lines(finished.output);
  for (std::string line; std::getline(lines, line);)
    if (!line.empty()) found.push_back(line);
  return found;
}

TEST_P(Completion, OffersSubcommandsOfEachLevel) {
  EXPECT_THAT(offers({"fairlead", ""}), IsSupersetOf({"perf", "run", "doctor"}));
  EXPECT_THAT(offers({"fairlead", "pe"}), testing::ElementsAre("perf"));
  EXPECT_THAT(offers({"fairlead", "perf", ""}), IsSupersetOf({"latency", "bandwidth", "verbs"}));
  EXPECT_THAT(offers({"fairlead", "bulkping", "s"}), testing::ElementsAre("server"));
}

TEST_P(Completion, OffersTheOptionsOfANestedCommand) {
  const Words options = offers({"fairlead", "perf", "latency", "--"});
  EXPECT_THAT(options, IsSupersetOf({"--path", "--loan", "--report"}));
  EXPECT_THAT(options, Not(Contains("--server"))) << "that is an option of perf";
  EXPECT_THAT(offers({"fairlead", "perf", "--"}), Contains("--server"));
  EXPECT_THAT(offers({"fairlead", "perf", "latency", "--size", "8", "--se"}), testing::ElementsAre("--seconds"));
  EXPECT_THAT(offers({"fairlead", "top", "--o"}), Each(StartsWith("--o")));
}

TEST_P(Completion, LeavesArgumentsToFileNames) {
  EXPECT_THAT(offers({"fairlead", "keygen", ""}), testing::ElementsAre("(-o default)"));
}

TEST_P(Completion, KnowsTheDaemon) {
  EXPECT_THAT(offers({"fairleadd", "--"}), Contains("--help"));
  EXPECT_THAT(offers({"fairleadd", "--"}), Not(Contains("--server")));
}

INSTANTIATE_TEST_SUITE_P(In, Completion, testing::Values(kBash, kZsh),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace fairlead::tests
