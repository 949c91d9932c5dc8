// AM-2 programs in C, run as jobs of several processes. The launcher is our own console, mpirun or the test itself.
// Some jobs lose datagrams or ranks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "host/daemon_for_tests.hpp"
#include "tests/child_process.hpp"
#include "tests/two_namespaces.hpp"

namespace fairlead::tests {
namespace {

using namespace std::chrono_literals;

std::string program(const std::string& name) {
  return FAIRLEAD_AMUDP_FOLDER "/amudp_" + name;
}

/// Returns the command line of a program whose engines use this path; "host": they are those of a host engine.
std::vector<std::string> over(const std::string& path, std::vector<std::string> words) {
  std::vector<std::string> all{"env"};
  if (path == "host") {
    all.insert(all.end(), {"FAIRLEAD_CORE=host", "FAIRLEAD_HOST=" + host::DaemonForTests::shared().file()});
  } else {
    all.push_back("FAIRLEAD_PATH=" + path);
  }
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

void expect_done(const Finished& finished, int ranks) {
  EXPECT_EQ(finished.exit_code, 0) << finished.error_output << finished.output;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string line = "rank " + std::to_string(rank) + " of " + std::to_string(ranks) + ": done\n";
    EXPECT_NE(finished.output.find(line), std::string::npos) << finished.output;
  }
}

TEST(Amudp, EachCallGivesItsErrors) {
  const Finished finished = run({program("calls")});
  EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
}

// Parameter `how`: P polls, B blocks.
using Job = std::tuple<int, const char*, const char*, const char*>;  // ranks, how, path, lost datagrams
class AmudpJobs : public testing::TestWithParam<Job> {};

TEST_P(AmudpJobs, AllKindsReachAllRanks) {
  const auto& [ranks, how, path, lost] = GetParam();
  const char* rounds = ranks <= 2 ? "3" : "1";
  expect_done(run(over(path, {"KINDS_WORD=a word of the console", std::string("AMUDP_FAULT_RATE=") + lost,
                              program("kinds"), std::to_string(ranks), "L", rounds, how})),
              ranks);
}
const auto name_of_job = [](const testing::TestParamInfo<Job>& info) {
  const auto& [ranks, how, path, lost] = info.param;
  return std::to_string(ranks) + how + "_" + path + "_" +
         (lost[0] == '0' && lost[1] == 0 ? "0" : std::string(lost + 3));
};
const auto kRanks = testing::Values(1, 2, 4, 8);
const auto kHow = testing::Values("P", "B");
INSTANTIATE_TEST_SUITE_P(Shm, AmudpJobs, testing::Combine(kRanks, kHow, testing::Values("auto"), testing::Values("0")),
                         name_of_job);
INSTANTIATE_TEST_SUITE_P(Udp, AmudpJobs,
                         testing::Combine(kRanks, kHow, testing::Values("udp"), testing::Values("0", "0.01", "0.05")),
                         name_of_job);

INSTANTIATE_TEST_SUITE_P(Host, AmudpJobs,
                         testing::Combine(testing::Values(2, 4), kHow, testing::Values("host"), testing::Values("0")),
                         name_of_job);

TEST(Amudp, WhatIsNotTakenComesBackAndThePairGoesOn) {
  const Finished finished = run({program("bounce"), "2", "L"});
  EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
  EXPECT_EQ(finished.output, "all came back\n");
}

// The message about the death must come from the console. Without its message to the ranks, and without its SIGKILL
// where a rank cannot end, the other ranks would sleep for 100 s.
class AmudpDeaths : public testing::TestWithParam<const char*> {};
TEST_P(AmudpDeaths, OfOneRankEndTheJobAndAreNamed) {
  const Finished finished = run({program("mortal"), "4", "L", "2", GetParam()});
  EXPECT_EQ(finished.exit_code, 128 + 9);
  EXPECT_THAT(
      finished.error_output,
      testing::ContainsRegex("rank 2 \\(process [0-9]+\\) ended without AMX_SPMDExit: killed by signal 9 \\(Killed\\); "
                             "its last sign of life came [0-9]+ ms ago, after 2 barriers and gathers: the job ends"));
}
INSTANTIATE_TEST_SUITE_P(How, AmudpDeaths, testing::Values("kill", "stuck"));

// How the rank ends, what the others do, the exit code of the job, and what is told of the rank.
struct End {
  const char* how;
  const char* meanwhile;
  int exit_code;
  const char* told;
};
class AmudpEnds : public testing::TestWithParam<End> {};
TEST_P(AmudpEnds, OfOneRankAreThoseOfTheJob) {
  const auto [how, meanwhile, exit_code, told] = GetParam();
  for (const char* rank : {"0", "2"}) {
    const Finished finished = run({program("mortal"), "3", "L", rank, how, meanwhile});
    EXPECT_EQ(finished.exit_code, exit_code) << finished.error_output;
    EXPECT_THAT(finished.error_output, testing::HasSubstr(std::string("rank ") + rank + " (process "));
    EXPECT_THAT(finished.error_output, testing::HasSubstr(std::string("ended without AMX_SPMDExit: ") + told));
    for (const char* other : {"0", "1", "2"}) {
      const std::string callback = std::string("callback of rank ") + other + ": " + std::to_string(exit_code);
      EXPECT_EQ(finished.error_output.find(callback) != std::string::npos, *other != *rank) << finished.error_output;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(All, AmudpEnds,
                         testing::Values(End{"return", "compute", 3, "exit code 3"},
                                         End{"_exit", "barrier", 3, "exit code 3"},
                                         End{"zero", "wait", 1, "exit code 0"},
                                         End{"fatal", "poll", 128 + 6, "killed by signal 6 (Aborted)"},
                                         End{"abort", "wait", 128 + 6, "killed by signal 6 (Aborted)"},
                                         End{"segv", "barrier", 128 + 11, "killed by signal 11 (Segmentation fault)"},
                                         End{"term", "poll", 128 + 15, "killed by signal 15 (Terminated)"},
                                         End{"kill", "request", 128 + 9, "killed by signal 9 (Killed)"}),
                         [](const auto& test) { return test.param.how[0] == '_' ? "exit_at_once" : test.param.how; });

TEST(Amudp, OneRanksExitIsTheJobsAndCallbacksRun) {
  const Finished finished = run({program("mortal"), "3", "L", "1", "exit"});
  EXPECT_EQ(finished.exit_code, 5) << finished.error_output;
  for (const char* rank : {"0", "1", "2"}) {
    EXPECT_NE(finished.error_output.find(std::string("callback of rank ") + rank + ": 5"), std::string::npos)
        << finished.error_output;
  }
}

// Jobs that run in parallel use disjoint ports. Otherwise a rank of another job could get a port that a rank has left.
std::string ports_of_this_process() {
  return "FAIRLEAD_PORT_FIRST=" + std::to_string(24'600 + ::getpid() % 900 * 8);
}

// The rank that leaves, and how all ranks wait (P polls, B blocks). FAIRLEAD_TEST_LEAVES=1000 sets the number of rounds
// of each case.
using Leave = std::tuple<const char*, const char*, const char*, const char*>;  // rank, how, path, lost datagrams
class AmudpLeaves : public testing::TestWithParam<Leave> {};

TEST_P(AmudpLeaves, AreNoErrorForRanksThatStillSend) {
  const auto& [rank, how, path, lost] = GetParam();
  const char* const wanted = std::getenv("FAIRLEAD_TEST_LEAVES");
  const int rounds = wanted != nullptr ? std::atoi(wanted) : 1;
  for (int round = 0; round < rounds; ++round) {
    const Finished finished =
        run(over(path, {std::string("AMUDP_FAULT_RATE=") + lost, ports_of_this_process(), "FAIRLEAD_PORT_COUNT=8",
                        program("leave"), "3", "L", rank, std::to_string(1 + round * 7 % 50), how}));
    ASSERT_EQ(finished.exit_code, 0) << finished.error_output;
    ASSERT_EQ(finished.error_output, "");
  }
}
INSTANTIATE_TEST_SUITE_P(Shm, AmudpLeaves,
                         testing::Combine(testing::Values("0", "2"), kHow, testing::Values("auto"),
                                          testing::Values("0")));
INSTANTIATE_TEST_SUITE_P(Udp, AmudpLeaves,
                         testing::Combine(testing::Values("0", "2"), kHow, testing::Values("udp"),
                                          testing::Values("0", "0.01")));

INSTANTIATE_TEST_SUITE_P(Host, AmudpLeaves,
                         testing::Combine(testing::Values("0", "2"), kHow, testing::Values("host"),
                                          testing::Values("0")));

TEST(Amudp, ByACommandOfTheUser) {
  expect_done(
      run({"env", "AMUDP_CSPAWN_CMD=for i in $(seq %N); do %C & done; wait", program("kinds"), "3", "C", "1", "P"}), 3);
  const Finished finished = run({"env", "AMUDP_CSPAWN_SERVERS=one two",
                                 "AMUDP_CSPAWN_CMD=echo %M 100%%; for i in $(seq %N); do %C & done; wait",
                                 program("kinds"), "2", "C", "1", "B"});
  expect_done(finished, 2);
  EXPECT_THAT(finished.output, testing::HasSubstr("one two 100%\n"));
}

// AMUDP's settings that mean nothing here are accepted, and named once in a job. GASNET_FREEZE is GASNet's own.
TEST(Amudp, SettingsWithoutEffectAreNamed) {
  const std::vector<std::string> settings{
      "AMUDP_RECVDEPTH=64", "GASNET_SENDDEPTH=9",     "AMUDP_ROUTE_OUTPUT=1",
      "AMUDP_FS_SYNC=1",    "AMUDP_LINEBUFFERSZ=100", "AMUDP_ENV_CMD=env",
      "AMUDP_FREEZE=1",     "AMUDP_VERBOSEENV=1",     "AMUDP_CSPAWN_ROUTE_OUTPUT=1"};
  std::vector<std::string> words{"env", "GASNET_FREEZE=1", "GASNET_VERBOSEENV=1"};
  words.insert(words.end(), settings.begin(), settings.end());
  words.insert(words.end(), {program("kinds"), "2", "L", "1", "P"});
  const Finished finished = run(words);
  expect_done(finished, 2);
  for (const std::string& setting : settings) {
    const std::string line = setting.substr(0, setting.find('=')) + " has no effect: ";
    const auto at = finished.error_output.find(line);
    EXPECT_NE(at, std::string::npos) << line << finished.error_output;
    EXPECT_EQ(finished.error_output.find(line, at + 1), std::string::npos) << finished.error_output;
  }
  EXPECT_THAT(run({"env", "GASNET_FREEZE=1", "GASNET_VERBOSEENV=1", program("kinds"), "1", "L", "1", "P"}).error_output,
              testing::IsEmpty());
}

// How the ranks share their bundle, how many threads each has, and the path. M: under a mutex, P: in parallel.
using Threads = std::tuple<int, const char*, const char*, const char*, const char*>;  // ranks, sharing, threads, path
class AmudpThreads : public testing::TestWithParam<Threads> {};
TEST_P(AmudpThreads, SendPollAndMoveTheSegmentAtOnce) {
  const auto& [ranks, sharing, threads, path, lost] = GetParam();
  // Datagrams of an Ethernet's size: a long message then takes several, and the segment may move between them.
  expect_done(
      run({"env", std::string("AMUDP_FAULT_RATE=") + lost, std::string("FAIRLEAD_PATH=") + path,
           "FAIRLEAD_DATAGRAM_SIZE=1472", program("threads"), std::to_string(ranks), "L", sharing, threads, "40"}),
      ranks);
}
const auto kSharing = testing::Values("M", "P");
INSTANTIATE_TEST_SUITE_P(Shm, AmudpThreads,
                         testing::Combine(testing::Values(1, 3), kSharing, testing::Values("1", "4"),
                                          testing::Values("auto"), testing::Values("0")));
INSTANTIATE_TEST_SUITE_P(Udp, AmudpThreads,
                         testing::Combine(testing::Values(2, 4), kSharing, testing::Values("3"), testing::Values("udp"),
                                          testing::Values("0", "0.01")));

// Each measurement ends, with more ranks than processors too: ranks, arguments.
using Figures = std::tuple<const char*, const char*, const char*>;  // ranks, what, how
class AmudpFigures : public testing::TestWithParam<Figures> {};
TEST_P(AmudpFigures, EndWithMoreRanksThanProcessors) {
  const auto& [ranks, what, how] = GetParam();
  const Finished finished = run({program("figures"), ranks, "L", what, "900", "40", how});
  EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
  EXPECT_THAT(finished.output, testing::HasSubstr(std::string(what) + " 900 B, rank 1 of " + ranks));
}
INSTANTIATE_TEST_SUITE_P(All, AmudpFigures,
                         testing::Combine(testing::Values("2", "8"),
                                          testing::Values("short", "medium", "long", "ping", "bulk", "lock", "next",
                                                          "all", "barrier"),
                                          testing::Values("P", "Y", "B")));
TEST(Amudp, FiguresOfThreads) {
  const Finished finished = run({program("figures"), "4", "L", "lock", "0", "40", "Y", "3"});
  EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
}

// The ranks inherit the console's input; by convention only the first one reads it.
TEST(Amudp, TheFirstRankReadsTheInputOfTheConsole) {
  const Finished finished =
      run({"sh", "-c", "printf 'one line\\nanother' | " + program("words") + " 3 L 'an argument' \"with 'quotes'\""});
  EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
  EXPECT_THAT(finished.output, testing::HasSubstr("rank 0 read: one line\nrank 0 read: another\n"));
  for (const char* rank : {"0", "1", "2"}) {
    EXPECT_THAT(finished.output, testing::HasSubstr(std::string("rank ") + rank + " of 3: an argument, with 'quotes'"));
    EXPECT_THAT(finished.error_output, testing::HasSubstr(std::string("rank ") + rank + " complains\n"));
  }
}

// A shell script stands in for ssh. It drops the host name and passes its input on.
TEST(Amudp, BySsh) {
  const std::string shell = testing::TempDir() + "/ssh_for_amudp_test.sh";
  std::ofstream(shell) << "#!/bin/sh\nshift 3\nexec /bin/sh -c \"$1\"\n";
  ASSERT_EQ(std::system(("chmod +x " + shell).c_str()), 0);
  expect_done(run({"env", "AMUDP_SSH_SERVERS=127.0.0.1 127.0.0.1", "AMUDP_SSH_CMD=" + shell, program("kinds"), "3", "S",
                   "1", "P"}),
              3);
}

TEST(Amudp, ByHandAndStrangersStayOut) {
  const std::string master = "127.0.0.1:" + std::to_string(free_port());
  const auto words = [&](const std::string& rank, const std::string& secret) {
    return std::vector<std::string>{"env",
                                    "FAIRLEAD_AM_RANK=" + rank,
                                    "FAIRLEAD_AM_SIZE=3",
                                    "FAIRLEAD_AM_MASTER=" + master + ":" + secret,
                                    program("kinds_ammpi"),
                                    "1",
                                    "P"};
  };
  ChildProcess first(words("0", "swordfish")), second(words("1", "swordfish"));
  const Finished stranger = run(words("2", "swordfist"));
  EXPECT_NE(stranger.exit_code, 0);
  EXPECT_NE(stranger.error_output.find("did not take us"), std::string::npos) << stranger.error_output;
  const Finished third = run(words("2", "swordfish"));
  EXPECT_EQ(third.exit_code, 0) << third.error_output;
  EXPECT_EQ(first.wait(20s), 0) << first.error_output();
  EXPECT_EQ(second.wait(20s), 0) << second.error_output();
}

// Half of the ranks run in another network namespace. `percent` of the datagrams between the two namespaces are lost.
struct NetworkJob {
  int ranks, percent;
  const char* how;
};
class AmudpNetworks : public testing::TestWithParam<NetworkJob> {};
TEST_P(AmudpNetworks, AllKindsReachAllRanks) {
  const auto [ranks, percent, how] = GetParam();
  TwoNamespaces two;
  if (const auto fault = two.set_up()) GTEST_SKIP() << *fault;
  if (const auto fault = percent != 0 ? two.lose(percent) : std::nullopt) GTEST_SKIP() << *fault;
  std::vector<std::unique_ptr<ChildProcess>> all;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::vector<std::string> words{"env",
                                         "FAIRLEAD_AM_RANK=" + std::to_string(rank),
                                         "FAIRLEAD_AM_SIZE=" + std::to_string(ranks),
                                         "FAIRLEAD_AM_MASTER=10.77.0.1:4321:swordfish",
                                         program("kinds_ammpi"),
                                         "2",
                                         how};
    all.push_back(std::make_unique<ChildProcess>(rank % 2 == 0 ? two.enter_first(words) : two.enter_second(words)));
  }
  for (int rank = 0; rank < ranks; ++rank) {
    ChildProcess& process = *all[static_cast<std::size_t>(rank)];
    EXPECT_EQ(process.wait(60s), 0) << process.error_output();
    EXPECT_NE(process.output().find("rank " + std::to_string(rank) + " of " + std::to_string(ranks) + ": done"),
              std::string::npos);
  }
}
INSTANTIATE_TEST_SUITE_P(Ranks, AmudpNetworks,
                         testing::Values(NetworkJob{2, 0, "P"}, NetworkJob{2, 1, "B"}, NetworkJob{2, 5, "P"},
                                         NetworkJob{4, 0, "B"}, NetworkJob{4, 1, "P"}, NetworkJob{8, 5, "B"}));

TEST(Amudp, AloneWithoutALauncher) {
  expect_done(run({program("kinds_ammpi"), "2", "P"}), 1);
}

TEST(Amudp, ByMpirun) {
  if (!is_installed("mpirun")) GTEST_SKIP() << "mpirun is missing (openmpi-bin)";
  for (const char* name : {"kinds", "kinds_ammpi"}) {
    expect_done(run({"mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "4", program(name), "1", "B"}), 4);
  }
}

// Objects compiled against the original AMUDP link with our library: the same symbols, and functions or data as there.
TEST(Amudp, OldObjectsRelink) {
  expect_done(run({program("relink"), "3", "L"}), 3);
  std::ifstream list(FAIRLEAD_SOURCE_FOLDER "/doors/amudp/tests/symbols.txt");
  std::string line;
  std::vector<std::string> wanted;
  while (std::getline(list, line)) {
    if (!line.starts_with('#')) wanted.push_back(line);
  }
  ASSERT_GT(wanted.size(), 60u);
  for (const char* library :
       {"nm -D --defined-only " FAIRLEAD_AMUDP_SHARED, "nm -g --defined-only " FAIRLEAD_AMUDP_STATIC}) {
    const Finished names =
        run({"sh", "-c", std::string(library) + " | sed -E 's/^[0-9a-f]* ([A-Z]) ([^@]*).*/\\1 \\2/; s/^[BR] /D /'"});
    ASSERT_EQ(names.exit_code, 0) << names.error_output;
    for (const std::string& name : wanted)
      EXPECT_NE(("\n" + names.output).find("\n" + name + "\n"), std::string::npos) << library << ": " << name;
  }
}

TEST(Amudp, WrongWordsAreExplained) {
  struct Wrong {
    std::vector<std::string> environment, words;
    int exit_code;
    const char* explanation;
  };
  const auto by_hand = [](const char* rank, const char* size, const char* master) {
    return std::vector<std::string>{std::string("FAIRLEAD_AM_RANK=") + rank, std::string("FAIRLEAD_AM_SIZE=") + size,
                                    std::string("FAIRLEAD_AM_MASTER=") + master};
  };
  const std::string good = "127.0.0.1:1:x";
  for (const auto& [environment, words, exit_code, explanation] : {
           Wrong{{}, {program("kinds"), "2", "Q"}, 2, "SPAWN is one of"},
           Wrong{{}, {program("kinds"), "2x", "L"}, 2, "NPROCS SPAWN arguments"},
           Wrong{{}, {program("kinds"), "-1", "L"}, 2, "NPROCS SPAWN arguments"},
           Wrong{{"AMUDP_NETWORKDEPTH=lots"}, {program("relink"), "1", "L"}, 2, "AMUDP_NETWORKDEPTH=lots is not"},
           Wrong{{"GASNET_FAULT_RATE=5"}, {program("calls")}, 9, "GASNET_FAULT_RATE=5 is not a number from 0 to 1"},
           Wrong{{"AMUDP_REQUESTTIMEOUT_MAX=1s"}, {program("calls")}, 9, "AMUDP_REQUESTTIMEOUT_MAX=1s is not a number"},
           Wrong{{"AMUDP_MASTERIP=localhost"}, {program("kinds"), "1", "L"}, 2, "names are not looked up"},
           Wrong{by_hand("one", "2", good.c_str()),
                 {program("kinds_ammpi"), "1", "P"},
                 2,
                 "FAIRLEAD_AM_RANK (0..SIZE-1)"},
           Wrong{
               by_hand("2", "2", good.c_str()), {program("kinds_ammpi"), "1", "P"}, 2, "FAIRLEAD_AM_RANK (0..SIZE-1)"},
           Wrong{by_hand("1", "", good.c_str()), {program("kinds_ammpi"), "1", "P"}, 2, "FAIRLEAD_AM_SIZE"},
           Wrong{by_hand("1", "2", "host:1:x"), {program("kinds_ammpi"), "1", "P"}, 2, "IP:PORT:SECRET"},
           Wrong{{"PMIX_RANK=0", "PMIX_NAMESPACE=nobody"}, {program("kinds_ammpi"), "1", "P"}, 2, "PMIx"},
       }) {
    std::vector<std::string> all{"env"};
    all.insert(all.end(), environment.begin(), environment.end());
    all.insert(all.end(), words.begin(), words.end());
    const Finished finished = run(all);
    EXPECT_EQ(finished.exit_code, exit_code) << explanation;
    EXPECT_NE(finished.error_output.find(explanation), std::string::npos) << finished.error_output;
  }
}

}  // namespace
}  // namespace fairlead::tests
