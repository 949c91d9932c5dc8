// Two daemons are replaced while programs exchange messages and bulk through them. Neither program notices.

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <thread>

#include <nlohmann/json.hpp>

#include "base/file_descriptor.hpp"
#include "tests/child_process.hpp"
#include "tests/environment.hpp"

namespace fairlead::tests {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr auto kPatience = 30s;       // ends a failing test only
constexpr int kLoopsUnderLoad = 200;  // of a client; each takes it 0.3 ms of processor time

class ReplacedFairleadd : public testing::Test {
 protected:
  ReplacedFairleadd() {
    char folder[] = "/tmp/fairleadd-XXXXXX";
    folder_ = ::mkdtemp(folder);
    address_ = fmt::format("127.0.0.1@udp:{}:39:12", free_port());
  }
  ~ReplacedFairleadd() override { std::filesystem::remove_all(folder_); }

  static std::string built() { return std::filesystem::path(FAIRLEAD_COMMAND).parent_path() / "fairleadd"; }
  std::string socket(int number) const { return fmt::format("{}/host{}", folder_, number); }

  /// Starts a daemon that reaches its peers over UDP, as those of other hosts, unless a setting says otherwise.
  std::unique_ptr<ChildProcess> start(int number, const std::string& program = built(),
                                      const std::vector<std::string>& settings = {},
                                      const std::vector<std::string>& options = {}) const {
    std::vector<std::string> words{"env", "FAIRLEAD_PATH=udp"};
    words.insert(words.end(), settings.begin(), settings.end());
    words.insert(words.end(), {program, "--socket", socket(number)});
    words.insert(words.end(), options.begin(), options.end());
    auto daemon = std::make_unique<ChildProcess>(words);
    EXPECT_TRUE(daemon->wait_for_text("listens at", kPatience)) << daemon->error_output();
    return daemon;
  }
  static std::vector<std::string> attached(const std::string& host, std::vector<std::string> words) {
    std::vector<std::string> all{"env", "FAIRLEAD_CORE=host", "FAIRLEAD_HOST=" + host};
    all.insert(all.end(), words.begin(), words.end());
    return all;
  }
  std::unique_ptr<ChildProcess> start_server() const { return start_server(address_); }
  std::unique_ptr<ChildProcess> start_server(const std::string& address) const {
    auto server = std::make_unique<ChildProcess>(
        attached(socket(0), {FAIRLEAD_COMMAND, "bulkping", "server", "--address", address}));
    EXPECT_TRUE(server->wait_for_text("serving at", kPatience)) << server->error_output();
    return server;
  }
  std::vector<std::string> client(int loops) const { return client(loops, address_); }
  std::vector<std::string> client(int loops, const std::string& server) const {
    return attached(socket(1), {FAIRLEAD_COMMAND, "bulkping", "client", "--server", server, "--loops",
                                fmt::format("{}", loops), "--bulk-size", "256K"});
  }
  /// Replaces the file `program` by a shell script. A process that runs it keeps the old file.
  static void write_script(const std::string& program, const std::string& text) {
    std::filesystem::remove(program);
    std::ofstream(program) << "#!/bin/sh\n" << text;
    ASSERT_EQ(::chmod(program.c_str(), 0755), 0);
  }
  static bool comes_true(const auto& condition) {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (!condition()) {
      if (std::chrono::steady_clock::now() >= until) return false;
      std::this_thread::sleep_for(1ms);
    }
    return true;
  }
  /// Tries again if peers did not come to rest, which they may not on busy processors.
  Finished replace(int number) const {
    Finished done;
    comes_true([&] {
      done = run({built(), "--replace", "--socket", socket(number)});
      return !done.error_output.contains("has not acknowledged all that was sent to it");
    });
    return done;
  }

  std::string folder_, address_;
};

TEST_F(ReplacedFairleadd, NeitherSideNoticesItUnderLoad) {
  const int times = is_full_run() ? 100 : 2;
  const std::vector<std::string> loss{"FAIRLEAD_FAULT=drop=1%"};
  const auto one = start(0, built(), loss), other = start(1, built(), loss);
  const auto server = start_server();
  ChildProcess busy(client(kLoopsUnderLoad + 30 * times));
  ASSERT_TRUE(wait_until_busy(busy.pid(), 10ms, kPatience));
  for (int i = 0; i < times; ++i) {
    const Finished replaced = replace(i % 2);
    ASSERT_EQ(replaced.exit_code, 0) << i << ": " << replaced.error_output << one->error_output()
                                     << other->error_output();
    EXPECT_THAT(replaced.output, HasSubstr("replaced; applications were not served for"));
  }
  EXPECT_EQ(busy.wait(kPatience), 0) << busy.error_output();
  EXPECT_THAT(busy.output(), HasSubstr("all verified")) << busy.error_output();
  // New applications are served by the same processes.
  const Finished after = run(client(5));
  EXPECT_EQ(after.exit_code, 0) << after.error_output;
  EXPECT_THAT(run({FAIRLEAD_COMMAND, "ps", "--host", socket(0)}).output, HasSubstr(fmt::format("{} ", server->pid())));
  one->send_signal(SIGTERM);
  EXPECT_EQ(one->wait(kPatience), 0) << one->error_output();
  EXPECT_FALSE(std::filesystem::exists(socket(0))) << "it is as much its own as of the program that made it";
}

/// A daemon with several threads, for peers over UDP and over shared memory.
class ReplacedThreads : public ReplacedFairleadd, public testing::WithParamInterface<const char*> {};

INSTANTIATE_TEST_SUITE_P(Paths, ReplacedThreads, testing::Values("FAIRLEAD_PATH=udp", "FAIRLEAD_PATH=auto"));

TEST_P(ReplacedThreads, GoOnUnderLoad) {
  constexpr int kThreads = 3;
  const std::string config = folder_ + "/config";
  const auto write = [&](int threads) { std::ofstream(config) << fmt::format("threads = {}\n", threads); };
  const auto engines = [](const std::string& host) {
    const Finished ps = run({FAIRLEAD_COMMAND, "ps", "--json", "--host", host});
    std::set<std::string> seen;
    for (const auto& one : nlohmann::json::parse(ps.output)) seen.insert(one["engine"].get<std::string>());
    return seen;
  };
  write(kThreads);
  const std::vector<std::string> settings{"FAIRLEAD_FAULT=drop=1%", GetParam()};
  const auto one = start(0, built(), settings, {"--config", config}),
             other = start(1, built(), settings, {"--threads", "3"});
  std::vector<std::unique_ptr<ChildProcess>> servers, clients;
  for (int i = 0; i < kThreads; ++i) {
    servers.push_back(start_server(fmt::format("127.0.0.1@udp:*:39:{}", i + 20)));
    const std::string said = servers.back()->output();
    const std::string address = said.substr(said.find("127.0.0.1"), said.find(',') - said.find("127.0.0.1"));
    clients.push_back(std::make_unique<ChildProcess>(client(kLoopsUnderLoad, address)));
  }
  const auto before = engines(socket(0));
  EXPECT_EQ(before.size(), std::size_t{kThreads}) << "each of its threads has work";
  for (const auto& busy : clients) ASSERT_TRUE(wait_until_busy(busy->pid(), 10ms, kPatience));
  write(kThreads + 1);
  EXPECT_THAT(replace(0).error_output, HasSubstr("--threads changed from 3 to 4, which needs a restart"));
  write(kThreads);
  for (int i = 0; i < 4; ++i) {
    const Finished replaced = replace(i % 2);
    ASSERT_EQ(replaced.exit_code, 0) << i << ": " << replaced.error_output << one->error_output()
                                     << other->error_output();
  }
  for (const auto& busy : clients) {
    EXPECT_EQ(busy->wait(kPatience), 0) << busy->error_output();
    EXPECT_THAT(busy->output(), HasSubstr("all verified")) << busy->error_output();
  }
  // New applications get the engines that there are.
  for (int i = 0; i < kThreads; ++i) servers.push_back(start_server(fmt::format("127.0.0.1@udp:*:39:{}", i + 30)));
  EXPECT_EQ(engines(socket(0)), before);
  one->send_signal(SIGTERM);
  EXPECT_EQ(one->wait(kPatience), 0) << one->error_output();
}

/// A daemon whose two threads have engines that reach each other over UDP or over shared memory.
class ReplacedActive : public ReplacedFairleadd, public testing::WithParamInterface<const char*> {};

INSTANTIATE_TEST_SUITE_P(Paths, ReplacedActive, testing::Values("FAIRLEAD_PATH=udp", "FAIRLEAD_PATH=auto"));

// Each rank counts the replies to its messages of all kinds, and checks their bytes. The console's process starts the
// ranks, which attach to the daemon.
TEST_P(ReplacedActive, AJobOfActiveMessagesGoesOn) {
  constexpr int kRanks = 4;
  const auto daemon = start(0, built(), {GetParam()}, {"--threads", "2"});
  const int rounds = is_full_run() ? 20'000 : 500;
  ChildProcess job(attached(socket(0), {FAIRLEAD_AMUDP_FOLDER "/amudp_kinds", fmt::format("{}", kRanks), "L",
                                        fmt::format("{}", rounds), "P"}));
  const auto ranks = [&] {
    return nlohmann::json::parse(run({FAIRLEAD_COMMAND, "ps", "--json", "--host", socket(0)}).output).size();
  };
  ASSERT_TRUE(comes_true([&] { return ranks() == kRanks; })) << job.error_output();
  int replaced_with_ranks = 0;
  for (int i = 0; i < 3; ++i) {
    const Finished replaced = replace(0);
    ASSERT_EQ(replaced.exit_code, 0) << replaced.error_output << daemon->error_output();
    if (ranks() == kRanks) ++replaced_with_ranks;
  }
  EXPECT_GT(replaced_with_ranks, 0) << "the job has ended too early: it proves nothing";
  EXPECT_EQ(job.wait(2 * kPatience), 0) << job.error_output() << daemon->error_output();
  for (int rank = 0; rank < kRanks; ++rank)
    EXPECT_THAT(job.output(), HasSubstr(fmt::format("rank {} of {}: done", rank, kRanks)));
}

TEST_F(ReplacedFairleadd, GoesOnIfTheNewProgramCannot) {
  const std::string program = folder_ + "/fairleadd";
  std::filesystem::copy_file(built(), program);
  const auto one = start(0, program), other = start(1);
  const auto server = start_server();
  std::filesystem::remove(program);
  EXPECT_THAT(replace(0).error_output, HasSubstr("cannot start")) << "there is none";
  write_script(program, "echo the new one is broken >&2\nexit 3\n");
  const Finished refused = replace(0);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.error_output, HasSubstr("the new one is broken"));
  write_script(program, "exit 0\n");
  EXPECT_THAT(replace(0).error_output, HasSubstr("it exited with status 0 without a message"))
      << "it has not looked at the state";
  EXPECT_EQ(run(client(5)).exit_code, 0);
  std::filesystem::remove(program);
  std::filesystem::copy_file(built(), program);
  EXPECT_EQ(replace(0).exit_code, 0);
  EXPECT_EQ(run(client(5)).exit_code, 0);
}

TEST_F(ReplacedFairleadd, FollowsASymbolicLinkAnewEachTime) {
  const std::string link = folder_ + "/current";
  const auto install = [&](const std::string& version) {
    std::filesystem::create_directory(folder_ + "/" + version);
    std::filesystem::copy_file(built(), folder_ + "/" + version + "/fairleadd");
    std::filesystem::remove(link);
    std::filesystem::create_symlink(version, link);
  };
  const auto own = [](const ChildProcess& process, const char* file) {
    return fmt::format("/proc/{}/{}", process.pid(), file);
  };
  install("one");
  const auto daemon = start(0, "current/fairleadd", {"env", "--chdir=" + folder_});
  for (const char* const version : {"two", "three"}) {
    install(version);
    const Finished replaced = replace(0);
    EXPECT_EQ(replaced.exit_code, 0) << replaced.error_output;
    EXPECT_EQ(std::filesystem::read_symlink(own(*daemon, "exe")), folder_ + "/" + version + "/fairleadd");
    std::string name;
    std::ifstream(own(*daemon, "comm")) >> name;
    EXPECT_EQ(name, "fairleadd");
  }
}

// The trial reads its settings from a pipe, and so lasts until the test writes them.
TEST_F(ReplacedFairleadd, ExecutesTheFileThatWasTried) {
  const std::string program = folder_ + "/fairleadd", other = folder_ + "/other", config = folder_ + "/config";
  std::filesystem::copy_file(built(), program);
  write_script(other, "echo the file that came later >&2\nexit 3\n");
  ASSERT_EQ(::mkfifo(config.c_str(), 0600), 0);
  const auto settle = [&](const auto& meanwhile) {
    base::FileDescriptor pipe;
    ASSERT_TRUE(comes_true([&] {  // it has a reader
      pipe = base::FileDescriptor(::open(config.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
      return pipe.is_open();
    }));
    meanwhile();
    const std::string text = fmt::format("socket = \"{}\"\n", socket(0));
    ASSERT_EQ(::write(pipe.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  };
  const auto nothing = [] {};
  ChildProcess daemon({"env", "FAIRLEAD_PATH=udp", program, "--config", config});
  settle(nothing);
  ASSERT_TRUE(daemon.wait_for_text("listens at", kPatience)) << daemon.error_output();
  ChildProcess asker({built(), "--replace", "--socket", socket(0)});
  settle([&] { std::filesystem::rename(other, program); });
  ASSERT_TRUE(comes_true([&] {  // the next program, not its trial
    std::string words;
    std::getline(std::ifstream(fmt::format("/proc/{}/cmdline", daemon.pid())), words);
    return words.contains("--resume");
  })) << asker.error_output();
  settle(nothing);
  EXPECT_EQ(asker.wait(kPatience), 0) << asker.error_output() << daemon.error_output();
  EXPECT_THAT(replace(0).error_output, HasSubstr("the file that came later")) << "the next one takes what is there now";
}

TEST_F(ReplacedFairleadd, ExecutesNoScriptThatChangedDuringItsTrial) {
  const std::string program = folder_ + "/fairleadd", other = folder_ + "/other";
  std::filesystem::copy_file(built(), program);
  const auto daemon = start(0, program);
  write_script(other, "exit 3\n");
  write_script(program, fmt::format("mv {} {}\nexec {} \"$@\"\n", other, program, built()));
  EXPECT_THAT(replace(0).error_output, HasSubstr("was changed while it was tried"));
  EXPECT_EQ(run({FAIRLEAD_COMMAND, "ps", "--host", socket(0)}).exit_code, 0);
}

// A signal that arrives during exec() waits until the new program handles it.
TEST_F(ReplacedFairleadd, EndsInOrderIfItIsToldToDuringTheChange) {
  const std::string program = folder_ + "/fairleadd";
  std::filesystem::copy_file(built(), program);
  const auto one = start(0, program);
  write_script(program, "case \"$*\" in *--resume*) kill -TERM $$;; esac\nexec " + built() + " \"$@\"\n");
  EXPECT_EQ(replace(0).exit_code, 0);
  EXPECT_EQ(one->wait(kPatience), 0) << one->error_output();
  EXPECT_FALSE(std::filesystem::exists(socket(0)));
}

TEST_F(ReplacedFairleadd, DespiteWhatItInheritedFromItsParent) {
  const std::vector<std::string> parents{"exec env --ignore-signal=CHLD", "exec 2>/dev/full; exec",
                                         "exec <&- >&- 2>&-; exec"};
  for (const std::string& parent : parents) {
    ChildProcess one({"sh", "-c", parent + " \"$0\" --socket \"$1\"", built(), socket(0)});
    Finished replaced;
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (replaced.exit_code != 0 && std::chrono::steady_clock::now() < end) {
      replaced = replace(0);
      if (!replaced.error_output.contains("cannot connect")) break;
    }
    EXPECT_EQ(replaced.exit_code, 0) << parent << ": " << replaced.error_output;
    one.send_signal(SIGTERM);
    EXPECT_EQ(one.wait(kPatience), 0) << parent;
  }
}

TEST_F(ReplacedFairleadd, SettingsThatCannotBeAreFoundByTheTrial) {
  const std::string config = folder_ + "/config", log = folder_ + "/log";
  std::filesystem::create_directory(log);
  const auto write = [&](const std::string& file) { std::ofstream(config) << fmt::format("socket = \"{}\"\n", file); };
  write(socket(0));
  ChildProcess one({"env", "FAIRLEAD_PATH=udp", "FAIRLEAD_FLIGHT=" + log + "/flight", built(), "--config", config});
  ASSERT_TRUE(one.wait_for_text("listens at", kPatience)) << one.error_output();
  const auto server = start_server();
  write(socket(1));
  EXPECT_THAT(replace(0).error_output, HasSubstr("which needs a restart"));
  write(socket(0));
  std::filesystem::remove_all(log);
  EXPECT_THAT(replace(0).error_output, HasSubstr("FAIRLEAD_FLIGHT"));
  std::filesystem::create_directory(log);
  EXPECT_EQ(replace(0).exit_code, 0);
}

/// Peers that share memory with the daemon's engine go on over UDP during the replacement, and share memory again.
class ReplacedWithLocalPeers : public ReplacedFairleadd {
 protected:
  static const std::vector<std::string>& shared() {
    static const std::vector<std::string> settings{"FAIRLEAD_PATH=auto"};
    return settings;
  }
  /// Returns how many messages the process has exchanged through shared memory since it was replaced last.
  static std::uint64_t shared_messages(const ChildProcess& process) {
    const Finished top = run({FAIRLEAD_COMMAND, "top", "--json", "--pid", fmt::format("{}", process.pid())});
    const auto seen = nlohmann::json::parse(top.output, nullptr, false);
    std::uint64_t count = 0;
    if (seen.is_object() && seen.contains("engines"))
      for (const auto& engine : seen["engines"])
        for (const char* counter : {"shm.messages_sent", "shm.messages_delivered"})
          count += engine["counters"].value(counter, std::uint64_t{0});
    return count;
  }
  void replace_while(ChildProcess& busy, int times, const std::vector<const ChildProcess*>& daemons) {
    constexpr std::uint64_t kShares = 20;
    for (int i = 0; i < times; ++i) {
      const auto host = static_cast<std::size_t>(i) % daemons.size();
      ASSERT_TRUE(comes_true([&] { return shared_messages(*daemons[host]) >= kShares || busy.wait(0ms) != -1; })) << i;
      ASSERT_EQ(busy.wait(0ms), -1) << i << ": it shall not end so soon: " << busy.output() << busy.error_output();
      const Finished replaced = replace(static_cast<int>(host));
      ASSERT_EQ(replaced.exit_code, 0) << i << ": " << replaced.error_output;
    }
  }
};

TEST_F(ReplacedWithLocalPeers, AnApplicationOfItsOwnEngine) {
  const auto daemon = start(0, built(), shared());
  const auto server = start_server();
  ChildProcess busy(
      {FAIRLEAD_COMMAND, "bulkping", "client", "--server", address_, "--loops", "1000000", "--bulk-size", "256K"});
  replace_while(busy, 4, {daemon.get()});
  ASSERT_TRUE(comes_true([&] { return shared_messages(*daemon) > 20; })) << "they share memory again";
  busy.send_signal(SIGINT);
  constexpr int kInterrupted = 130;
  EXPECT_EQ(busy.wait(kPatience), kInterrupted) << busy.output() << busy.error_output();
  EXPECT_THAT(busy.output(), HasSubstr("all verified"));
}

TEST_F(ReplacedWithLocalPeers, TwoDaemonsOfAHost) {
  const auto one = start(0, built(), shared()), other = start(1, built(), shared());
  const auto server = start_server();
  ChildProcess busy(client(1'000'000));
  replace_while(busy, 4, {one.get(), other.get()});
  ASSERT_TRUE(comes_true([&] { return shared_messages(*other) > 20; })) << "they share memory again";
}

TEST_F(ReplacedWithLocalPeers, IsRefusedIfThereIsNoOtherWay) {
  const auto daemon = start(0, built(), {"FAIRLEAD_PATH=shm"});
  const auto server = start_server();
  const ChildProcess busy(
      {"env", "FAIRLEAD_PATH=shm", FAIRLEAD_COMMAND, "bulkping", "client", "--server", address_, "--loops", "1000000"});
  ASSERT_TRUE(comes_true([&] { return shared_messages(*daemon) > 20; }));
  EXPECT_THAT(replace(0).error_output, HasSubstr("FAIRLEAD_PATH=shm permits no other way"));
  const std::uint64_t before = shared_messages(*daemon);
  EXPECT_TRUE(comes_true([&] { return shared_messages(*daemon) > before; })) << "it goes on";
}

/// A program with queue pairs, in two processes; the second gets the address of the first.
class ReplacedWithQueuePairs : public ReplacedFairleadd, public testing::WithParamInterface<const char*> {
 protected:
  static constexpr int kNoHost = -1;  // the program has an engine of its own

  std::vector<std::string> program(int host, int port, const std::vector<std::string>& options) const {
    std::vector<std::string> words{FAIRLEAD_COMMAND, "run"};
    if (host != kNoHost) words.emplace_back("--host");
    words.emplace_back("--");
    std::istringstream all(GetParam());
    for (std::string word; all >> word;) words.push_back(word);
    words.insert(words.end(), {"-p", fmt::format("{}", port)});
    words.insert(words.end(), options.begin(), options.end());
    return host == kNoHost ? words : attached(socket(host), words);
  }
  static std::string name() {
    const std::string line = GetParam();
    return line.substr(0, line.find(' '));
  }
  /// Returns the number of requests that queue pairs of these processes sent, executed, or carried out in a peer's
  /// memory, of which that peer sees nothing. A daemon counts since it was replaced last.
  static std::uint64_t requests(const std::vector<const ChildProcess*>& processes) {
    std::uint64_t count = 0;
    for (const ChildProcess* process : processes) {
      const Finished top = run({FAIRLEAD_COMMAND, "top", "--json", "--pid", fmt::format("{}", process->pid())});
      const auto seen = nlohmann::json::parse(top.output, nullptr, false);
      if (!seen.is_object() || !seen.contains("engines")) continue;
      for (const auto& engine : seen["engines"])
        for (const char* counter : {"qp.requests_sent", "qp.requests_executed", "qp.direct_writes", "qp.direct_reads"})
          count += engine["counters"].value(counter, std::uint64_t{0});
    }
    return count;
  }
  /// The program never ends by itself. After each replacement it goes on.
  void replace_again_and_again(const std::vector<const ChildProcess*>& daemons, int client_host) {
    constexpr int kTimes = 4;
    constexpr std::uint64_t kGoesOn = 50;  // requests
    const int port = free_port();
    ChildProcess server(program(0, port, {"-n", "5000000"}));
    ASSERT_TRUE(comes_true([&] { return listens(server.pid(), port) || server.wait(0ms) != -1; }));
    ChildProcess client(program(client_host, port, {"-n", "5000000", "127.0.0.1"}));
    std::vector<const ChildProcess*> engines = daemons;
    if (client_host == kNoHost) engines.push_back(&client);
    const auto goes_on = [&] {
      const std::uint64_t before = requests(engines);
      return comes_true([&] { return requests(engines) >= before + kGoesOn || client.wait(0ms) != -1; });
    };
    const auto told = [&] { return client.output() + client.error_output() + server.output() + server.error_output(); };
    for (int i = 0; i < kTimes; ++i) {
      const int host = i % static_cast<int>(daemons.size());
      ASSERT_TRUE(goes_on()) << i << told();
      const Finished done = replace(host);
      ASSERT_EQ(done.exit_code, 0) << i << ": " << done.error_output << told();
      EXPECT_TRUE(goes_on()) << i << told();
      ASSERT_EQ(client.wait(0ms), -1) << i << client.output() << client.error_output() << server.error_output();
      ASSERT_EQ(server.wait(0ms), -1) << i << server.output() << server.error_output();
    }
  }
};

TEST_P(ReplacedWithQueuePairs, OfTwoDaemons) {
  if (!is_installed(name())) GTEST_SKIP() << name() << " is missing";
  const auto one = start(0), other = start(1);
  replace_again_and_again({one.get(), other.get()}, 1);
}

TEST_P(ReplacedWithQueuePairs, OfTwoDaemonsThatShareMemory) {
  if (!is_installed(name())) GTEST_SKIP() << name() << " is missing";
  const std::vector<std::string> shared{"FAIRLEAD_PATH=auto"};
  const auto one = start(0, built(), shared), other = start(1, built(), shared);
  replace_again_and_again({one.get(), other.get()}, 1);
}

TEST_P(ReplacedWithQueuePairs, WithAnEngineOfTheOtherProgram) {
  if (!is_installed(name())) GTEST_SKIP() << name() << " is missing";
  const auto one = start(0, built(), {"FAIRLEAD_PATH=auto"});
  replace_again_and_again({one.get()}, kNoHost);
}

TEST_P(ReplacedWithQueuePairs, OfOneDaemon) {
  if (!is_installed(name())) GTEST_SKIP() << name() << " is missing";
  const auto one = start(0);
  replace_again_and_again({one.get()}, 0);
}

// ibv_rc_pingpong verifies all data, the others check each completion: sends, writes, reads, shared receive queues,
// datagrams. Each receive of a datagram waits for the daemon, which takes long on busy processors: 64 instead of 512.
INSTANTIATE_TEST_SUITE_P(Programs, ReplacedWithQueuePairs,
                         testing::Values("ibv_rc_pingpong -g 0 -c", "ib_write_bw -s 65536", "ib_read_bw -s 65536",
                                         "ibv_srq_pingpong -g 0", "ib_send_bw -c UD -s 1024 -r 64"));

/// As above, in sealed sessions whose keys change often.
class ReplacedSealed : public ReplacedFairleadd {};

TEST_F(ReplacedSealed, NeitherSideNoticesItUnderLoad) {
  const std::string key = folder_ + "/key";
  ASSERT_EQ(run({FAIRLEAD_COMMAND, "keygen", "--psk", key}).exit_code, 0);
  const std::vector<std::string> settings{"FAIRLEAD_SEAL=psk:" + key, "FAIRLEAD_SEAL_REKEY_BYTES=1M"};
  const auto one = start(0, built(), settings), other = start(1, built(), settings);
  const auto server = start_server();
  ChildProcess busy(client(kLoopsUnderLoad));
  ASSERT_TRUE(wait_until_busy(busy.pid(), 10ms, kPatience));
  for (int i = 0; i < 4; ++i) {
    const Finished replaced = replace(i % 2);
    ASSERT_EQ(replaced.exit_code, 0) << i << ": " << replaced.error_output << one->error_output();
  }
  EXPECT_EQ(busy.wait(kPatience), 0) << busy.error_output();
  EXPECT_THAT(busy.output(), HasSubstr("all verified")) << busy.error_output();
  // Without its keys it goes on with the old program.
  std::filesystem::remove(key);
  EXPECT_THAT(replace(0).error_output, HasSubstr("the new program cannot continue"));
}

TEST_F(ReplacedFairleadd, SaysWhyItCannotBeReplaced) {
  EXPECT_THAT(replace(0).error_output, HasSubstr(socket(0))) << "nobody listens";
}

}  // namespace
}  // namespace fairlead::tests
