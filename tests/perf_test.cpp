// `fairlead perf` reports all its rows and figures. No test expects a speed.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include <nlohmann/json.hpp>

#include "tests/child_process.hpp"

namespace fairlead::tests {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Json = nlohmann::json;

/// Two processors of this process, or an empty text.
std::string two_processors() {
  cpu_set_t ours;
  CPU_ZERO(&ours);
  sched_getaffinity(0, sizeof ours, &ours);
  std::vector<int> found;
  for (int cpu = 0; cpu < CPU_SETSIZE && found.size() < 2; ++cpu) {
    if (CPU_ISSET(cpu, &ours)) found.push_back(cpu);
  }
  return found.size() == 2 ? fmt::format("{},{}", found[0], found[1]) : "";
}

/// A child of `parent`; -1 if there is none.
pid_t child_of(pid_t parent) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::string line;
    std::getline(std::ifstream(entry.path() / "stat"), line);
    // "PID (NAME) STATE PARENT ...". NAME may hold any characters.
    const std::size_t end_of_name = line.rfind(')');
    if (end_of_name == std::string::npos || line.size() < end_of_name + 4) continue;
    if (std::atoi(line.c_str() + end_of_name + 4) == parent) return std::atoi(line.c_str());
  }
  return -1;
}

/// The second process of a running measurement; -1 if there is none.
pid_t busy_child_of(const ChildProcess& perf) {
  for (int look = 0; look < 1000; ++look) {
    std::this_thread::sleep_for(10ms);
    // Both processes spin while they measure. Their set-up takes a tenth of this CPU time.
    if (const pid_t far = child_of(perf.pid()); far > 0) return wait_until_busy(far, 200ms, 60s) ? far : -1;
  }
  return -1;
}

Json rows_of(const std::vector<std::string>& words) {
  std::vector<std::string> all{FAIRLEAD_COMMAND, "perf"};
  all.insert(all.end(), words.begin(), words.end());
  all.insert(all.end(), {"--json", "--seconds", "0.1", "--cpus", two_processors()});
  const Finished finished = run(all, 100s);
  EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
  return Json::parse(finished.output, nullptr, false);
}

class Perf : public testing::Test {
 protected:
  void SetUp() override {
    if (two_processors().empty()) GTEST_SKIP() << "only one processor is ours";
  }
};

void expect_keys(const Json& row) {
  for (const char* key : {"op", "path", "size", "p50_us", "p99_us", "p999_us", "gb_per_s", "messages_per_s",
                          "cpu_s_per_gb", "canary_ns"}) {
    EXPECT_TRUE(row.contains(key)) << key;
  }
  EXPECT_GT(row["messages_per_s"], 0);
}

TEST_F(Perf, SharedMemoryStandsBesideItsFloor) {
  for (const auto& [op, size] : {std::pair{"latency", "8"}, std::pair{"bandwidth", "100K"}}) {
    const Json rows = rows_of({op, "--path", "shm", "--size", size});
    ASSERT_EQ(rows.size(), 2u);
    for (const Json& row : rows) expect_keys(row);
    EXPECT_EQ(rows[0]["path"], "shm");
    EXPECT_EQ(rows[1]["path"], "floor-shm");
  }
}

TEST_F(Perf, LatencyStandsBesideTheFloor) {
  const Json rows = rows_of({"latency", "--size", "8,4K"});
  ASSERT_EQ(rows.size(), 4u);
  const char* paths[] = {"udp", "floor-udp", "udp", "floor-udp"};
  for (std::size_t i = 0; i < 4; ++i) {
    expect_keys(rows[i]);
    EXPECT_EQ(rows[i]["op"], "latency");
    EXPECT_EQ(rows[i]["path"], paths[i]);
    EXPECT_EQ(rows[i]["size"], i < 2 ? 8 : 4096);
    EXPECT_GT(rows[i]["p50_us"], 0);
    EXPECT_GE(rows[i]["p999_us"], rows[i]["p50_us"]);
  }
}

TEST_F(Perf, BandwidthStandsBesideUdpAndTcp) {
  const Json rows = rows_of({"bandwidth", "--size", "64K"});
  ASSERT_EQ(rows.size(), 3u);
  for (const Json& row : rows) expect_keys(row);
  EXPECT_EQ(rows[0]["path"], "udp");
  EXPECT_EQ(rows[1]["path"], "floor-udp");
  EXPECT_EQ(rows[2]["path"], "floor-tcp");
}

TEST_F(Perf, RateCountsMessages) {
  const Json rows = rows_of({"rate", "--no-floor"});
  ASSERT_EQ(rows.size(), 1u);
  expect_keys(rows[0]);
}

TEST_F(Perf, QueuePairsHaveEachOperationOverEachPath) {
  for (const char* path : {"shm", "udp"}) {
    for (const char* op : {"send", "write", "read", "fetch_add", "compare_swap"}) {
      const Json rows = rows_of({"verbs", "--op", op, "--path", path, "--no-floor"});
      ASSERT_EQ(rows.size(), 1u) << op << path;
      expect_keys(rows[0]);
      EXPECT_EQ(rows[0]["op"], op);
      EXPECT_EQ(rows[0]["path"], path);
      EXPECT_GT(rows[0]["p50_us"], 0);
    }
  }
}

TEST_F(Perf, AStreamOfQueuePairsHasItsDepthUnderWay) {
  const Json rows =
      rows_of({"verbs", "--op", "write", "--stream", "--path", "shm", "--size", "8,1M", "--depth", "4", "--no-floor"});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["op"], "write stream");
  for (const Json& row : rows) expect_keys(row);
}

// A lone send over shared memory completes at once, so no failed operation tells the sender that the peer has died.
TEST_F(Perf, ASecondProcessThatIsKilledEndsTheMeasurement) {
  const std::vector<std::vector<std::string>> kinds{
      {"verbs", "--op", "send"}, {"verbs", "--op", "write"}, {"verbs", "--op", "send", "--stream"}, {"am"}};
  for (const auto& kind : kinds) {
    std::vector<std::string> words{FAIRLEAD_COMMAND, "perf"};
    words.insert(words.end(), kind.begin(), kind.end());
    words.insert(words.end(), {"--path", "shm", "--seconds", "60", "--no-floor", "--cpus", two_processors()});
    ChildProcess perf(words);
    const pid_t far = busy_child_of(perf);
    ASSERT_GT(far, 0) << perf.error_output();
    ASSERT_EQ(::kill(far, SIGKILL), 0);
    EXPECT_EQ(perf.wait(30s), 1);
    EXPECT_NE(perf.error_output(), "");
  }
}

TEST_F(Perf, AnAtomicHasNoOtherSize) {
  const Finished finished = run({FAIRLEAD_COMMAND, "perf", "verbs", "--op", "fetch_add", "--size", "16"}, 100s);
  EXPECT_NE(finished.exit_code, 0);
  EXPECT_TRUE(finished.error_output.contains("8 bytes")) << finished.error_output;
}

// Sender and receiver share a processor. Without flow control the sender would fill all buffers before the receiver
// runs.
TEST_F(Perf, RateLosesNothingToAReceiverThatIsLate) {
  const std::string two = two_processors(), one = two.substr(0, two.find(','));
  const Finished finished = run({FAIRLEAD_COMMAND, "perf", "rate", "--path", "self", "--size", "4K", "--seconds", "0.2",
                                 "--json", "--cpus", one + "," + one},
                                100s);
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_EQ(finished.error_output, "");
  EXPECT_GT(Json::parse(finished.output)[0]["messages_per_s"], 0);
}

// On a busy host the second process may wait for seconds, and perf must not report it as silent. The engines' own limit
// of five seconds is raised here.
TEST_F(Perf, ASecondProcessThatStandsStillForSecondsIsWaitedFor) {
  ChildProcess perf({"env", "FAIRLEAD_GIVE_UP_AFTER=60000", FAIRLEAD_COMMAND, "perf", "latency", "--path", "udp",
                     "--no-floor", "--json", "--seconds", "1", "--cpus", two_processors()});
  const pid_t far = busy_child_of(perf);
  ASSERT_GT(far, 0) << perf.error_output();
  ASSERT_EQ(::kill(far, SIGSTOP), 0);
  std::this_thread::sleep_for(2200ms);
  ASSERT_EQ(::kill(far, SIGCONT), 0);
  EXPECT_EQ(perf.wait(100s), 0) << perf.error_output();
}

// One rival is a script, one fails, one is installed, and one is missing.
TEST_F(Perf, CompareHasARowForEachRivalOrSaysWhyNot) {
  const std::string folder = fmt::format("{}perf_test.{}", testing::TempDir(), ::getpid());
  std::filesystem::create_directory(folder);
  const auto play = [&](const std::string& name, const std::string& script) {
    std::ofstream(folder + "/" + name) << "#!/bin/sh\n" << script;
    std::filesystem::permissions(folder + "/" + name, std::filesystem::perms::owner_all);
  };
  play("sockperf", "case $1 in pp) echo 'sockperf: Summary: Latency is 12.500 usec' ;; *) exec sleep 100 ;; esac\n");
  play("ucx_perftest", "echo 'there is no transport' >&2; exit 3\n");
  if (!is_installed("qperf")) GTEST_SKIP() << "qperf is missing";
  const Finished finished = run({"env", "PATH=" + folder + ":/usr/bin:/bin", FAIRLEAD_COMMAND, "perf", "latency",
                                 "--compare", "--no-floor", "--json", "--seconds", "0.1", "--cpus", two_processors()},
                                100s);
  std::filesystem::remove_all(folder);
  ASSERT_EQ(finished.exit_code, 0) << finished.error_output;
  std::map<std::string, Json> rows;
  for (const Json& row : Json::parse(finished.output)) rows[row["path"]] = row;
  EXPECT_TRUE(rows.contains("udp"));
  ASSERT_TRUE(rows.contains("sockperf-udp")) << finished.error_output;
  EXPECT_EQ(rows["sockperf-udp"]["p50_us"], 12.5);
  EXPECT_GT(rows["sockperf-udp"]["ours_to_floor"], 0);
  ASSERT_TRUE(rows.contains("qperf-tcp")) << finished.error_output;
  EXPECT_GT(rows["qperf-tcp"]["p50_us"], 0);
  EXPECT_FALSE(rows.contains("ucx-tcp"));
  EXPECT_THAT(finished.error_output,
              HasSubstr("fairlead: ucx-tcp gave no figure: it ended with code 3 and said: there is no transport"));
  EXPECT_THAT(finished.error_output,
              HasSubstr("fairlead: mpi-osu_latency: no row for it, there is no program osu_latency here\n"));
  EXPECT_FALSE(finished.error_output.contains("iperf3")) << "it measures no latency";
}

TEST_F(Perf, SelfNeedsNoSecondProcess) {
  for (const char* op : {"latency", "bandwidth", "rate"}) {
    const Json rows = rows_of({op, "--path", "self", "--size", "64"});
    ASSERT_EQ(rows.size(), 1u) << op;
    expect_keys(rows[0]);
    EXPECT_EQ(rows[0]["path"], "self");
  }
}

}  // namespace
}  // namespace fairlead::tests
