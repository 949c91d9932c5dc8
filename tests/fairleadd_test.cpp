// The program fairleadd: two programs exchange messages and bulk data through it. Also its end and its options.

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>

#include "base/file_descriptor.hpp"
#include "tests/child_process.hpp"

namespace fairlead::tests {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr auto kFairleaddWithin = 30s;  // ends a failing test only

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
    EXPECT_TRUE(daemon->wait_for_text("listens at", kFairleaddWithin)) << daemon->error_output();
    return daemon;
  }
  /// Returns the command line of a program that attaches to the daemon.
  std::vector<std::string> attached(std::vector<std::string> words) const {
    std::vector<std::string> all{"env", "FAIRLEAD_CORE=host", "FAIRLEAD_HOST=" + socket()};
    all.insert(all.end(), words.begin(), words.end());
    return all;
  }
  std::unique_ptr<ChildProcess> start_server() const {
    auto server =
        std::make_unique<ChildProcess>(attached({FAIRLEAD_COMMAND, "bulkping", "server", "--address", address_}));
    EXPECT_TRUE(server->wait_for_text("serving at", kFairleaddWithin)) << server->error_output();
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
  EXPECT_EQ(daemon->wait(kFairleaddWithin), 0) << daemon->error_output();
  EXPECT_FALSE(std::filesystem::exists(socket()));
}

// Whichever descriptor the daemon lacks, the program learns the cause. With a higher limit it is served.
TEST_F(Fairleadd, SaysThatItHasNoDescriptorLeft) {
  const auto daemon = start();
  const auto set_limit = [&](rlim_t most) {
    rlimit limit{};
    ASSERT_EQ(::prlimit(daemon->pid(), RLIMIT_NOFILE, nullptr, &limit), 0);
    limit.rlim_cur = most;
    ASSERT_EQ(::prlimit(daemon->pid(), RLIMIT_NOFILE, &limit, nullptr), 0);
  };
  const std::filesystem::path open_ones = fmt::format("/proc/{}/fd", daemon->pid());
  const auto used = static_cast<rlim_t>(std::ranges::distance(std::filesystem::directory_iterator(open_ones)));
  bool is_served = false;
  for (rlim_t more = 0; more < 40 && !is_served; ++more) {
    set_limit(used + more);
    const Finished finished = run(client("1"));
    is_served = finished.error_output.find("did not get through") != std::string::npos;
    if (is_served) continue;
    EXPECT_NE(finished.exit_code, 0);
    EXPECT_THAT(finished.error_output, AllOf(HasSubstr("limit"), HasSubstr("ulimit -n"))) << used << " + " << more;
  }
  EXPECT_TRUE(is_served);
}

// As docs/host.md shows it: the daemon chooses the port for both, and gives both the same engine.
TEST_F(Fairleadd, CarriesMessagesBetweenTwoProgramsOfOneEngine) {
  const auto daemon = start();
  address_ = "127.0.0.1@udp:*:39:12";
  const auto server = start_server();
  const std::string words = server->output();
  const std::size_t at = words.find("127.0.0.1@udp:");
  ASSERT_NE(at, words.npos) << words;
  address_ = words.substr(at, words.find(',', at) - at);
  const Finished finished = run(client("5"));
  EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
  address_.replace(address_.rfind(':'), address_.npos, ":13");  // no machine has this one
  const Finished refused = run(client("1"));
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.error_output, HasSubstr("has no transfer machine 39:13"));
}

TEST_F(Fairleadd, AKilledOneEndsItsApplicationsWithItsCauseAndComesBack) {
  auto daemon = start();
  const auto server = start_server();
  ChildProcess busy(client("1000000"));
  ASSERT_TRUE(wait_until_busy(busy.pid(), 50ms, kFairleaddWithin));
  daemon->send_signal(SIGKILL);
  daemon->wait(kFairleaddWithin);
  EXPECT_NE(busy.wait(kFairleaddWithin), 0);
  EXPECT_THAT(busy.error_output(), HasSubstr("host engine has ended"));
  EXPECT_EQ(server->wait(kFairleaddWithin), 1);
  EXPECT_THAT(server->error_output(), HasSubstr("host engine has ended"));
  daemon = start();  // replaces the socket file that the killed daemon has left
  const auto second = start_server();
  EXPECT_EQ(run(client("5")).exit_code, 0);
}

TEST_F(Fairleadd, EndsInOrderWithItsTerminal) {
  const auto daemon = start();
  daemon->send_signal(SIGHUP);
  EXPECT_EQ(daemon->wait(kFairleaddWithin), 0) << daemon->error_output();
  EXPECT_FALSE(std::filesystem::exists(socket()));
}

/// Binds a socket to `file`, as systemd does for a socket unit.
base::FileDescriptor bind_to(const std::string& file, int type) {
  base::FileDescriptor socket(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  file.copy(address.sun_path, sizeof address.sun_path - 1);
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  return socket;
}

/// Returns a command line that passes the socket to a program, as systemd does.
std::vector<std::string> handed_over(const base::FileDescriptor& socket, const std::vector<std::string>& words) {
  EXPECT_EQ(::fcntl(socket.get(), F_SETFD, 0), 0);
  std::vector<std::string> all{"bash", "-c",
                               fmt::format("LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\" \"$@\" 3<&{}", socket.get())};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

TEST_F(Fairleadd, IsStartedByTheFirstWhoConnectsToASocketOfSystemds) {
  const base::FileDescriptor listener = bind_to(socket(), SOCK_SEQPACKET);
  ASSERT_EQ(::listen(listener.get(), 16), 0);
  const auto words = handed_over(listener, {program(), "--socket", socket()});
  ChildProcess early(client("1"));  // waits in the backlog until the daemon starts; bulkping has no server yet
  auto daemon = std::make_unique<ChildProcess>(words);
  EXPECT_EQ(early.wait(kFairleaddWithin), 1);
  EXPECT_THAT(early.error_output(), Not(HasSubstr("host engine"))) << "it was served";
  {
    const auto server = start_server();
    daemon->send_signal(SIGKILL);
    daemon->wait(kFairleaddWithin);
    EXPECT_EQ(server->wait(kFairleaddWithin), 1);
  }
  daemon = std::make_unique<ChildProcess>(words);
  const auto server = start_server();
  EXPECT_EQ(run(client("5")).exit_code, 0);
  daemon->send_signal(SIGTERM);
  EXPECT_EQ(daemon->wait(kFairleaddWithin), 0) << daemon->error_output();
  EXPECT_TRUE(std::filesystem::exists(socket())) << "not ours to remove";
}

TEST_F(Fairleadd, RefusesASocketThatItCannotListenAt) {
  const base::FileDescriptor stream = bind_to(socket(), SOCK_STREAM);
  ASSERT_EQ(::listen(stream.get(), 16), 0);
  const Finished finished = run(handed_over(stream, {program(), "--socket", socket()}));
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_THAT(finished.error_output, HasSubstr("ListenSequentialPacket="));
}

TEST_F(Fairleadd, TellsItsSupervisorThatItIsReadyAndLives) {
  const std::string file = folder_ + "/notify";
  const base::FileDescriptor supervisor = bind_to(file, SOCK_DGRAM);
  const auto words = [&](std::string_view microseconds) {
    return std::vector<std::string>{
        "env", "NOTIFY_SOCKET=" + file, fmt::format("WATCHDOG_USEC={}", microseconds), program(), "--socket", socket()};
  };
  const auto next = [&] {
    pollfd waits{supervisor.get(), POLLIN, 0};
    char text[64] = {};
    if (::poll(&waits, 1, std::chrono::milliseconds(kFairleaddWithin).count()) == 1) {
      EXPECT_GT(::recv(supervisor.get(), text, sizeof text - 1, 0), 0);
    }
    return std::string(text);
  };
  const ChildProcess daemon(words("20000"));
  EXPECT_EQ(next(), "READY=1");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(next(), "WATCHDOG=1") << "an idle one, too";
}

TEST_F(Fairleadd, TakesAsManyDescriptorsAsItMay) {
  ChildProcess daemon({"sh", "-c", fmt::format("ulimit -Sn 64; exec {} --socket {}", program(), socket())});
  ASSERT_TRUE(daemon.wait_for_text("listens at", kFairleaddWithin)) << daemon.error_output();
  std::ifstream limits(fmt::format("/proc/{}/limits", daemon.pid()));
  const std::string all(std::istreambuf_iterator<char>(limits), {});
  EXPECT_THAT(all, HasSubstr("Max open files"));
  EXPECT_THAT(all, Not(testing::ContainsRegex("Max open files +64 ")));
}

TEST_F(Fairleadd, SaysWhatIsWrongWithItsSettings) {
  const auto said = [](std::vector<std::string> words) {
    words.insert(words.begin(), program());
    const Finished finished = run(words);
    EXPECT_NE(finished.exit_code, 0);
    return finished.output + finished.error_output;
  };
  EXPECT_THAT(said({"--socket", socket(), "--engine", "10.0.0.1:http"}), HasSubstr("10.0.0.1:http"));
  EXPECT_THAT(said({"--socket", socket(), "--allow-user", "no-such-user"}), HasSubstr("id -u"));
  EXPECT_THAT(said({"--socket", socket(), "--rule", "user=root speed=3"}), HasSubstr("'speed=3'"));
  EXPECT_THAT(said({"--socket", "/no/such/folder/host"}), HasSubstr("/no/such/folder"));
  EXPECT_THAT(said({"--applications", "0"}), HasSubstr("--applications"));
  const Finished unknown = run({program(), "--no-such-option"});
  EXPECT_EQ(unknown.exit_code, 2) << "as of `fairlead`";
  EXPECT_THAT(unknown.error_output, testing::MatchesRegex("fairleadd: .*--no-such-option.*\n"));
  const std::string file = folder_ + "/fairleadd.toml";
  std::ofstream(file) << "socket = \"" << socket() << "\"\nspeed = 3\n";
  EXPECT_THAT(said({"--config", file}), AllOf(HasSubstr(file), HasSubstr("speed"), HasSubstr("--help")));
  std::ofstream(file) << "socket = \"" << socket() << "\"\nengine = [\"127.0.0.1\", \"[::1]:20480\"]\n"
                      << "rule = [\"user=root portals=30-39\", \"group=root rate=10M\"]\n";
  const Finished good = run({program(), "--config", file, "--check"});
  EXPECT_EQ(good.exit_code, 0) << good.error_output;
  EXPECT_THAT(good.output, AllOf(HasSubstr(socket()), Not(HasSubstr("note:"))));
  const Finished elsewhere = run({program(), "--socket", socket(), "--engine", "192.0.2.7", "--check"});
  EXPECT_EQ(elsewhere.exit_code, 0) << "the host may get the address later";
  EXPECT_THAT(elsewhere.output, HasSubstr("no interface of this host has the address of engine 192.0.2.7"));
  EXPECT_THAT(said({"--socket", "relative", "--check"}), HasSubstr("absolute path"));
  EXPECT_THAT(said({"--socket", "/tmp/" + std::string(200, 'x'), "--check"}), HasSubstr("too long"));
  for (const bool is_link : {false, true}) {
    if (is_link) {
      std::filesystem::create_symlink(folder_ + "/elsewhere", socket());
    } else {
      std::ofstream(socket()) << "somebody's";
    }
    EXPECT_THAT(said({"--socket", socket()}), HasSubstr("no socket is there")) << "a link: " << is_link;
    EXPECT_TRUE(std::filesystem::remove(socket())) << "it stays, a link: " << is_link;
  }
  const auto daemon = start();
  EXPECT_THAT(said({"--socket", socket()}), HasSubstr("another fairleadd"));
}

}  // namespace
}  // namespace fairlead::tests
