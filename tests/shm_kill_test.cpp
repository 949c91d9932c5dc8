// Three processes of one host use shared memory, and one client after another is killed at a random moment. The other
// two continue, and nothing is left behind. FAIRLEAD_TEST_KILLS=500 sets the number of kills, FAIRLEAD_TEST_SEED the
// random seed.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "tests/child_process.hpp"
#include "tests/environment.hpp"

namespace fairlead::tests {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;

std::ptrdiff_t entries_of(const std::string& folder) {
  return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
}

/// Counts the engines' names. A process that is killed while it makes its name leaves the file of the nameless socket;
/// an engine that starts a minute later removes it.
std::ptrdiff_t names_in(const std::string& folder) {
  const auto is_name = [](const std::filesystem::directory_entry& entry) {
    return !entry.path().filename().string().starts_with(".fairlead-new-");
  };
  return std::count_if(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator(), is_name);
}

TEST(ShmKill, TwoOfThreeGoOnAndNothingIsLeft) {
  const std::uint64_t kills = number_from("FAIRLEAD_TEST_KILLS", 30);
  std::mt19937_64 random(number_from("FAIRLEAD_TEST_SEED", 1));
  const std::string directory = fmt::format("{}/shm_kill_test.{}", testing::TempDir(), ::getpid());
  std::filesystem::create_directory(directory);
  ::setenv("FAIRLEAD_PATH", "shm", 1);
  ::setenv("FAIRLEAD_SHM_DIRECTORY", directory.c_str(), 1);
  const std::string address = fmt::format("127.0.0.1@udp:{}:39:12", free_port());
  ChildProcess server({FAIRLEAD_COMMAND, "bulkping", "server", "--address", address, "--json"});
  ASSERT_TRUE(server.wait_for_text("serving at", 20s)) << server.error_output();
  const auto client = [&](const char* loops) {
    return std::make_unique<ChildProcess>(std::vector<std::string>{FAIRLEAD_COMMAND, "bulkping", "client", "--server",
                                                                   address, "--loops", loops, "--threads", "2",
                                                                   "--bulk-size", "256K", "--quiet", "--json"});
  };
  const auto steady = client("100000000");
  ASSERT_TRUE(wait_until_busy(server.pid(), 100ms, 60s)) << "it serves: all that it has open for one client is open";
  const std::string files = fmt::format("/proc/{}/fd", server.pid());
  const std::ptrdiff_t files_before = entries_of(files);
  for (std::uint64_t i = 0; i < kills; ++i) {
    const auto victim = client("100000000");
    std::this_thread::sleep_for(std::chrono::microseconds(20'000 + random() % 80'000));
    victim->send_signal(SIGKILL);
    ASSERT_EQ(victim->wait(20s), 128 + SIGKILL);
    ASSERT_EQ(server.wait(0ms), -1) << "kill " << i << ": " << server.error_output();
    ASSERT_EQ(steady->wait(0ms), -1) << "kill " << i << ": " << steady->error_output();
  }
  const auto last = client("1");  // it removes the socket names of the killed clients
  ASSERT_EQ(last->wait(60s), 0) << last->error_output();
  for (int look = 0; look < 10'000 && entries_of(files) != files_before; ++look) std::this_thread::sleep_for(3ms);
  EXPECT_EQ(entries_of(files), files_before) << "of the dead nothing stays open";
  EXPECT_EQ(names_in(directory), 2) << "those of the two that live";
  steady->send_signal(SIGINT);
  ASSERT_EQ(steady->wait(20s), 130) << steady->error_output();
  server.send_signal(SIGINT);
  ASSERT_EQ(server.wait(20s), 0) << server.error_output();
  const Json json = Json::parse(server.output());
  EXPECT_EQ(json["served"]["corrupt"], 0);
  EXPECT_GT(json["counters"]["shm.messages_delivered"], 0);
  EXPECT_EQ(json["counters"]["shm.refused_record"], 0);
  EXPECT_EQ(json["counters"]["link.messages_delivered"], 0) << "all of it went through shared memory";
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    EXPECT_EQ(entry.path().filename().string().find("fairlead"), std::string::npos) << entry.path();
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace fairlead::tests
