// fairleadd as its users meet it: two programs that exchange messages and bulk through it, its end, its options.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "tests/child_process.hpp"

namespace fairlead::tests {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr auto kPatience = 30s;  // ends a failing test only

class Fairleadd : public testing::Test {
 protected:
  Fairleadd() {
    char folder[] = "/tmp/fairleadd-XXXXXX";
    folder_ = ::mkdtemp(folder);
    address_ = fmt::format("127.0.0.1@udp:{}:39:12", free_port());
  }
  ~Fairleadd() override { std::filesystem::remove_all(folder_); }

  static std::string program() { return std::filesystem::path(FAIRLEAD_COMMAND).parent_path() / "fairleadd"; }
  std::string socket() const { return folder_ + "/host"; }
  std::unique_ptr<ChildProcess> start() const {
    auto daemon = std::make_unique<ChildProcess>(std::vector<std::string>{program(), "--socket", socket()});
    EXPECT_TRUE(daemon->wait_for_text("listens at", kPatience)) << daemon->error_output();
    return daemon;
  }
  /// A program that attaches to it.
  std::vector<std::string> attached(std::vector<std::string> words) const {
    std::vector<std::string> all{"env", "FAIRLEAD_CORE=host", "FAIRLEAD_HOST=" + socket()};
    all.insert(all.end(), words.begin(), words.end());
    return all;
  }
  std::unique_ptr<ChildProcess> start_server() const {
    auto server =
        std::make_unique<ChildProcess>(attached({FAIRLEAD_COMMAND, "bulkping", "server", "--address", address_}));
    EXPECT_TRUE(server->wait_for_text("serving at", kPatience)) << server->error_output();
    return server;
  }
  std::vector<std::string> client(std::string_view loops) const {
    return attached({FAIRLEAD_COMMAND, "bulkping", "client", "--server", address_, "--loops", std::string(loops),
                     "--bulk-size", "256K"});
  }

  std::string folder_, address_;
};

TEST_F(Fairleadd, CarriesMessagesAndBulkBetweenTwoPrograms) {
  const auto daemon = start();
  const auto server = start_server();
  const Finished listed = run({FAIRLEAD_COMMAND, "ps", "--host", socket()});
  EXPECT_THAT(listed.output, HasSubstr(fmt::format("{} ", server->pid()))) << listed.error_output;
  EXPECT_EQ(run({FAIRLEAD_COMMAND, "ps", "--host", "/no/such/host"}).exit_code, 1);
  const Finished finished = run(client("50"));
  EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
  EXPECT_THAT(finished.output, HasSubstr("all verified"));
  daemon->send_signal(SIGTERM);
  EXPECT_EQ(daemon->wait(kPatience), 0) << daemon->error_output();
  EXPECT_FALSE(std::filesystem::exists(socket()));
}

TEST_F(Fairleadd, AKilledOneEndsItsApplicationsWithItsCauseAndComesBack) {
  auto daemon = start();
  const auto server = start_server();
  ChildProcess busy(client("1000000"));
  ASSERT_TRUE(wait_until_busy(busy.pid(), 50ms, kPatience));
  daemon->send_signal(SIGKILL);
  daemon->wait(kPatience);
  EXPECT_NE(busy.wait(kPatience), 0);
  EXPECT_THAT(busy.error_output(), HasSubstr("host engine has ended"));
  EXPECT_EQ(server->wait(kPatience), 1);
  EXPECT_THAT(server->error_output(), HasSubstr("host engine has ended"));
  daemon = start();  // over the socket file that the killed one has left
  const auto second = start_server();
  EXPECT_EQ(run(client("5")).exit_code, 0);
}

TEST_F(Fairleadd, EndsInOrderWithItsTerminal) {
  const auto daemon = start();
  daemon->send_signal(SIGHUP);
  EXPECT_EQ(daemon->wait(kPatience), 0) << daemon->error_output();
  EXPECT_FALSE(std::filesystem::exists(socket()));
}

TEST_F(Fairleadd, TakesAsManyDescriptorsAsItMay) {
  ChildProcess daemon({"sh", "-c", fmt::format("ulimit -Sn 64; exec {} --socket {}", program(), socket())});
  ASSERT_TRUE(daemon.wait_for_text("listens at", kPatience)) << daemon.error_output();
  std::ifstream limits(fmt::format("/proc/{}/limits", daemon.pid()));
  const std::string all(std::istreambuf_iterator<char>(limits), {});
  EXPECT_THAT(all, HasSubstr("Max open files"));
  EXPECT_THAT(all, testing::Not(testing::ContainsRegex("Max open files +64 ")));
}

TEST_F(Fairleadd, SaysWhatIsWrongWithItsSettings) {
  const auto said = [](std::vector<std::string> words) {
    words.insert(words.begin(), program());
    const Finished finished = run(words);
    EXPECT_NE(finished.exit_code, 0);
    return finished.output + finished.error_output;
  };
  EXPECT_THAT(said({"--socket", socket(), "--engine", "10.0.0.1:http"}), HasSubstr("10.0.0.1:http"));
  EXPECT_THAT(said({"--socket", socket(), "--allow-user", "nobody"}), HasSubstr("id -u"));
  EXPECT_THAT(said({"--socket", "/no/such/folder/host"}), HasSubstr("/no/such/folder"));
  EXPECT_THAT(said({"--applications", "0"}), HasSubstr("--applications"));
  const std::string file = folder_ + "/fairleadd.toml";
  std::ofstream(file) << "socket = \"" << socket() << "\"\nspeed = 3\n";
  EXPECT_THAT(said({"--config", file}), HasSubstr("speed"));
  std::ofstream(file) << "socket = \"" << socket() << "\"\nengine = [\"127.0.0.1\", \"[::1]:20480\"]\n";
  const Finished good = run({program(), "--config", file, "--check"});
  EXPECT_EQ(good.exit_code, 0) << good.error_output;
  EXPECT_THAT(good.output, HasSubstr(socket()));
  const auto daemon = start();
  EXPECT_THAT(said({"--socket", socket()}), HasSubstr("another fairleadd"));
}

}  // namespace
}  // namespace fairlead::tests
