// AM-2 programs in C, as jobs of several processes: by our own console, by mpirun, by hand; with loss; and with deaths.

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/child_process.hpp"
#include "tests/two_namespaces.hpp"

namespace fairlead::tests {
namespace {

using namespace std::chrono_literals;

std::string program(const std::string& name) {
  return FAIRLEAD_AMUDP_FOLDER "/amudp_" + name;
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

struct Job {
  int ranks;
  std::string rounds, how, fault, path = "auto";
};
class AmudpJobs : public testing::TestWithParam<Job> {};

TEST_P(AmudpJobs, AllKindsReachAllRanks) {
  const Job& job = GetParam();
  expect_done(run({"env", "KINDS_WORD=a word of the console", "AMUDP_FAULT_RATE=" + job.fault,
                   "FAIRLEAD_PATH=" + job.path, program("kinds"), std::to_string(job.ranks), "L", job.rounds, job.how}),
              job.ranks);
}
INSTANTIATE_TEST_SUITE_P(Ranks, AmudpJobs,
                         testing::Values(Job{1, "5", "P", "0"}, Job{1, "5", "B", "0"}, Job{2, "5", "P", "0"},
                                         Job{2, "5", "B", "0", "udp"}, Job{4, "2", "P", "0", "udp"},
                                         Job{4, "2", "B", "0"}, Job{8, "1", "B", "0"}, Job{8, "1", "B", "0", "udp"},
                                         Job{4, "2", "B", "0.01", "udp"}, Job{2, "5", "P", "0.05", "udp"}));

TEST(Amudp, WhatIsNotTakenComesBackAndThePairGoesOn) {
  const Finished finished = run({program("bounce"), "2", "L"});
  EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
  EXPECT_EQ(finished.output, "all came back\n");
}

TEST(Amudp, AKilledRankEndsTheJobWithinASecondAndIsNamed) {
  const auto begun = std::chrono::steady_clock::now();
  const Finished finished = run({program("mortal"), "4", "L", "2", "kill"});
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 30s);  // the others would sleep for 100 s
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_NE(finished.error_output.find("rank 2"), std::string::npos) << finished.error_output;
  EXPECT_NE(finished.error_output.find("killed by signal 9"), std::string::npos) << finished.error_output;
  EXPECT_NE(finished.error_output.find("last sign of life"), std::string::npos) << finished.error_output;
}

TEST(Amudp, OneRanksExitIsTheJobsAndCallbacksRun) {
  const Finished finished = run({program("mortal"), "3", "L", "1", "exit"});
  EXPECT_EQ(finished.exit_code, 5) << finished.error_output;
  for (const char* rank : {"0", "1", "2"}) {
    EXPECT_NE(finished.error_output.find(std::string("callback of rank ") + rank + ": 5"), std::string::npos)
        << finished.error_output;
  }
}

TEST(Amudp, ByACommandOfTheUser) {
  expect_done(
      run({"env", "AMUDP_CSPAWN_CMD=for i in $(seq %N); do %C & done; wait", program("kinds"), "3", "C", "1", "P"}), 3);
}

// ssh is played by a shell that drops the host and keeps the input.
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

// Each process in a network of its own, with one percent of the datagrams between them lost.
TEST(Amudp, BetweenTwoNetworksWithLoss) {
  TwoNamespaces two;
  if (const auto fault = two.set_up()) GTEST_SKIP() << *fault;
  if (const auto fault = two.lose()) GTEST_SKIP() << *fault;
  const auto words = [&](const char* rank) {
    return std::vector<std::string>{"env",
                                    std::string("FAIRLEAD_AM_RANK=") + rank,
                                    "FAIRLEAD_AM_SIZE=2",
                                    "FAIRLEAD_AM_MASTER=10.77.0.1:4321:swordfish",
                                    program("kinds_ammpi"),
                                    "20",
                                    "B"};
  };
  ChildProcess first(two.enter_first(words("0")));
  const Finished second = run(two.enter_second(words("1")));
  EXPECT_EQ(second.exit_code, 0) << second.error_output;
  EXPECT_EQ(first.wait(20s), 0) << first.error_output();
  EXPECT_NE(first.output().find("rank 0 of 2: done"), std::string::npos);
}

TEST(Amudp, AloneWithoutALauncher) {
  expect_done(run({program("kinds_ammpi"), "2", "P"}), 1);
}

TEST(Amudp, ByMpirun) {
  if (std::system("command -v mpirun >/dev/null 2>&1") != 0) GTEST_SKIP() << "mpirun is missing (openmpi-bin)";
  for (const char* name : {"kinds", "kinds_ammpi"}) {
    expect_done(run({"mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "4", program(name), "1", "B"}), 4);
  }
}

TEST(Amudp, WrongWordsAreExplained) {
  const Finished finished = run({program("kinds"), "2", "Q"});
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_NE(finished.error_output.find("SPAWN is one of"), std::string::npos) << finished.error_output;
}

}  // namespace
}  // namespace fairlead::tests
