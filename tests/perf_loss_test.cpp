// `fairlead perf --loss` creates network namespaces, loses the stated share of packets, checks what arrives, and leaves
// nothing behind.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/child_process.hpp"
#include "tests/perf_command.hpp"

namespace fairlead::tests {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;
using Words = std::vector<std::string>;

class PerfLoss : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_two_processors()) GTEST_SKIP() << "processors 0 and 1 are not ours";
    for (const Words& words : {Words{"unshare", "-n", "true"}, Words{"unshare", "-Urn", "true"}})
      if (run(words, 10s).exit_code == 0) return;
    GTEST_SKIP() << "no permission to make a network namespace";
  }

  Json rows_of(const Words& more) {
    Words words = perf_words(more);
    words.insert(words.end(), {"--json", "--seconds", "0.25"});
    const Finished finished = run(words, 100s);
    EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
    return Json::parse(finished.output, nullptr, false);
  }
};

/// Expects rows of fairlead, UDP and cubic. The row of bbr depends on the kernel.
void expect_rows(const Json& rows, const char* op) {
  Words paths;
  for (const Json& row : rows) {
    EXPECT_EQ(row["op"], op);
    EXPECT_GT(row["messages_per_s"], 0) << row;
    EXPECT_EQ(row.contains("ours_to_floor"), row["path"] != "udp");
    paths.push_back(row["path"]);
  }
  EXPECT_THAT(paths, testing::IsSupersetOf({"udp", "floor-udp", "tcp-cubic"}));
}

TEST_F(PerfLoss, PacketsAreLostOneByOneAndAllArriveOnce) {
  const Json rows = rows_of({"bandwidth", "--loss", "5%"});
  expect_rows(rows, "bandwidth");
  EXPECT_EQ(rows[0]["size"], 65'536);
  EXPECT_EQ(rows[0]["loss"], 0.05);
  // Thousands of packets make this precise. There are too few GSO batches for such limits.
  EXPECT_GT(rows[0]["lost"], 0.03);
  EXPECT_LT(rows[0]["lost"], 0.07);
}

TEST_F(PerfLoss, WholeTrainsAreLostAndAllArriveOnce) {
  const Json rows = rows_of({"bandwidth", "--loss", "10%", "--loss-unit", "trains", "--no-floor"});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_GT(rows[0]["lost"], 0);
  EXPECT_GT(rows[0]["messages_per_s"], 0);
}

TEST_F(PerfLoss, LatencyIsMeasuredWithoutAndWithLoss) {
  const Json rows = rows_of({"latency", "--loss", "0,2%"});
  expect_rows(rows, "latency");
  EXPECT_EQ(rows[0]["size"], 64);
  EXPECT_EQ(rows[0]["lost"], 0);
  EXPECT_GT(rows[0]["p50_us"], 0);
  const auto lossy =
      std::ranges::find_if(rows, [](const Json& row) { return row["path"] == "udp" && row["loss"] > 0; });
  ASSERT_NE(lossy, rows.end());
  EXPECT_GT((*lossy)["lost"], 0);
}

/// Empty if the process has ended.
std::string content_of(pid_t process, const std::string& file) {
  std::ifstream in("/proc/" + std::to_string(process) + "/" + file);
  std::string text(4096, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

int first_child_of(pid_t process) {
  return std::atoi(content_of(process, "task/" + std::to_string(process) + "/children").c_str());
}

/// Whether the process runs. A zombie does not.
bool is_running(pid_t process) {
  const std::string text = content_of(process, "status");
  return !text.empty() && !text.contains("State:\tZ");
}

// The network namespaces live as long as the processes in them.
TEST_F(PerfLoss, WhenKilledNoProcessIsLeft) {
  ChildProcess perf(perf_words({"bandwidth", "--loss", "1%", "--seconds", "60", "--no-floor"}));
  const std::string far = "perf-far";
  int child = 0;
  for (int look = 0; look < 2000; ++look) {
    child = first_child_of(perf.pid());
    if (content_of(child, "cmdline").contains(far)) break;
    child = 0;
    std::this_thread::sleep_for(5ms);
  }
  ASSERT_GT(child, 0) << perf.error_output();
  perf.send_signal(SIGKILL);
  EXPECT_EQ(perf.wait(10s), 128 + SIGKILL);
  bool is_gone = false;
  for (int look = 0; !is_gone && look < 2000; ++look) {
    is_gone = !is_running(child);
    if (!is_gone) std::this_thread::sleep_for(5ms);
  }
  EXPECT_TRUE(is_gone) << "process " << child;
}

TEST_F(PerfLoss, WithoutPermissionItSaysWhatToDo) {
  const std::string command = "echo 0 >/proc/sys/user/max_net_namespaces && exec \"$@\"";
  Words words{"unshare", "-Ur", "sh", "-c", command, "sh"};
  const Words perf = perf_words({"latency", "--loss", "1%"});
  words.insert(words.end(), perf.begin(), perf.end());
  if (run({"unshare", "-Ur", "sh", "-c", "echo 0 >/proc/sys/user/max_net_namespaces"}, 10s).exit_code != 0)
    GTEST_SKIP() << "cannot take the permission away";
  const Finished finished = run(words, 30s);
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_THAT(finished.error_output, testing::HasSubstr("cannot make a network namespace"));
  EXPECT_THAT(finished.error_output, testing::HasSubstr("run it as root"));
}

}  // namespace
}  // namespace fairlead::tests
