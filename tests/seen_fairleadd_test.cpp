// What `fairlead ps` and `fairlead top` show of a daemon: its applications, and the ports, peers and queue pairs of its
// engines, before and after its program is replaced.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/child_process.hpp"

namespace fairlead::tests {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr auto kSeenWithin = 30s;  // ends a failing test only

class SeenFairleadd : public testing::Test {
 protected:
  SeenFairleadd() {
    char folder[] = "/tmp/fairleadd-XXXXXX";
    folder_ = ::mkdtemp(folder);
  }
  ~SeenFairleadd() override { std::filesystem::remove_all(folder_); }

  static std::string program() { return std::filesystem::path(FAIRLEAD_COMMAND).parent_path() / "fairleadd"; }
  std::string socket() const { return folder_ + "/host"; }
  std::vector<std::string> attached(std::vector<std::string> words) const {
    std::vector<std::string> all{"env", "FAIRLEAD_CORE=host", "FAIRLEAD_HOST=" + socket()};
    all.insert(all.end(), words.begin(), words.end());
    return all;
  }
  /// Returns how many entries of this kind the daemon's engines have.
  static std::size_t count(pid_t daemon, const char* part) {
    const Finished top = run({FAIRLEAD_COMMAND, "top", "--json", "--pid", std::to_string(daemon)});
    const auto seen = nlohmann::json::parse(top.output, nullptr, false);
    std::size_t entries = 0;
    if (seen.is_object() && seen.contains("engines"))
      for (const auto& engine : seen["engines"]) entries += engine.value(part, nlohmann::json::array()).size();
    return entries;
  }
  static bool shows(pid_t daemon, const char* part, std::size_t entries) {
    const auto until = std::chrono::steady_clock::now() + kSeenWithin;
    while (count(daemon, part) < entries) {
      if (std::chrono::steady_clock::now() >= until) return false;
      std::this_thread::sleep_for(10ms);
    }
    return true;
  }

  std::string folder_;
};

TEST_F(SeenFairleadd, BeforeAndAfterItIsReplaced) {
  if (!is_installed("ib_write_bw")) GTEST_SKIP() << "ib_write_bw is missing";
  ChildProcess daemon({"env", "FAIRLEAD_PATH=udp", program(), "--socket", socket()});
  ASSERT_TRUE(daemon.wait_for_text("listens at", kSeenWithin)) << daemon.error_output();
  const std::string address = fmt::format("127.0.0.1@udp:{}:39:12", free_port());
  ChildProcess server(attached({FAIRLEAD_COMMAND, "bulkping", "server", "--address", address}));
  ASSERT_TRUE(server.wait_for_text("serving at", kSeenWithin)) << server.error_output();
  ChildProcess peer({"env", "FAIRLEAD_PATH=udp", FAIRLEAD_COMMAND, "bulkping", "client", "--server", address, "--loops",
                     "100000000"});
  const int port = free_port();
  const std::vector<std::string> pairs{FAIRLEAD_COMMAND,    "run", "--host", "--", "ib_write_bw", "-n", "5000000", "-p",
                                       std::to_string(port)};
  ChildProcess target(attached(pairs));
  const auto until = std::chrono::steady_clock::now() + kSeenWithin;
  while (!listens(target.pid(), port) && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(5ms);
  std::vector<std::string> words = attached(pairs);
  words.emplace_back("127.0.0.1");
  ChildProcess initiator(words);
  for (const bool is_replaced : {false, true}) {
    if (is_replaced) {
      const Finished replaced = run({program(), "--replace", "--socket", socket()});
      ASSERT_EQ(replaced.exit_code, 0) << replaced.error_output << daemon.error_output();
    }
    EXPECT_TRUE(shows(daemon.pid(), "ports", 1)) << "replaced: " << is_replaced;
    EXPECT_TRUE(shows(daemon.pid(), "peers", 1)) << "replaced: " << is_replaced;
    EXPECT_TRUE(shows(daemon.pid(), "pairs", 2))
        << "replaced: " << is_replaced << initiator.output() << target.output();
    const std::string listed = run({FAIRLEAD_COMMAND, "ps", "--host", socket()}).output;
    for (const ChildProcess* const one : {&server, &target, &initiator})
      EXPECT_THAT(listed, HasSubstr(fmt::format("{} ", one->pid()))) << "replaced: " << is_replaced;
    const std::string metrics =
        run({FAIRLEAD_COMMAND, "top", "--openmetrics", "--pid", std::to_string(daemon.pid())}).output;
    EXPECT_THAT(metrics, HasSubstr("fairlead_link_segments_sent"));
    EXPECT_THAT(metrics, HasSubstr("# EOF"));
  }
}

}  // namespace
}  // namespace fairlead::tests
