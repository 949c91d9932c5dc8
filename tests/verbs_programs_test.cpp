// Unmodified Debian programs under `fairlead run`: two processes that exchange their addresses over TCP. A selection;
// FAIRLEAD_TEST_LONG_TESTS=1 runs all programs in all modes.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>
#include <utility>

#include "tests/child_process.hpp"
#include "tests/environment.hpp"
#include "tests/ordinary_user.hpp"
#include "tests/two_namespaces.hpp"

namespace fairlead::tests {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Words = std::vector<std::string>;

constexpr auto kStartAtMost = 20s, kProgramAtMost = 60s;

Words split(const std::string& line) {
  std::istringstream in(line);
  Words words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

Words operator+(Words left, const Words& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

const OrdinaryUser& ordinary_user() {
  static const OrdinaryUser user(FAIRLEAD_COMMAND);
  return user;
}

Words words_of(const std::string& command, const std::string& options, const Words& program) {
  return Words{command, "run"} + split(options) + Words{"--"} + program;
}

Words fairlead_run(const std::string& options, const Words& program) {
  return words_of(FAIRLEAD_COMMAND, options, program);
}

Words under_fairlead(const std::string& options, const Words& program) {
  return ordinary_user().prefix() + words_of(ordinary_user().command(), options, program);
}

bool wait_until_listening(ChildProcess& process, int port) {
  const auto deadline = std::chrono::steady_clock::now() + kStartAtMost;
  while (std::chrono::steady_clock::now() < deadline) {
    if (listens(process.pid(), port)) return true;
    if (process.wait(5ms) != -1) return false;
  }
  return false;
}

/// Runs server and client in their namespaces. Both must succeed.
template <typename Enter>
void expect_success(const std::string& program_line, const std::string& server_address, Enter enter_server,
                    Enter enter_client) {
  const Words program = split(program_line);
  if (!is_installed(program.front())) GTEST_SKIP() << program.front() << " is not installed";
  const int port = free_port();
  const Words with_port = program + Words{"-p", std::to_string(port)};
  ChildProcess server(enter_server(fairlead_run("", with_port)));
  ASSERT_TRUE(wait_until_listening(server, port)) << server.output() << server.error_output();
  const Finished client = run(enter_client(fairlead_run("", with_port + Words{server_address})), kProgramAtMost);
  EXPECT_EQ(client.exit_code, 0) << program_line << "\n" << client.output << client.error_output;
  EXPECT_EQ(server.wait(kProgramAtMost), 0) << program_line << "\nserver: " << server.output() << server.error_output();
}

// Client and server run on one host. scripts/verbs_programs.sh has the list.
TEST(VerbsPrograms, OfTheScriptAllPass) {
  const bool is_long = std::getenv("FAIRLEAD_TEST_LONG_TESTS") != nullptr;
  Words words{FAIRLEAD_SOURCE_FOLDER "/scripts/verbs_programs.sh", "--command", ordinary_user().command()};
  if (!is_long) words.emplace_back("--short");
  const Finished finished = run(words, is_long ? 60min : 10min);
  EXPECT_EQ(finished.exit_code, 0) << finished.output << finished.error_output;
  EXPECT_THAT(finished.output, HasSubstr("passed, 0 failed"));
  if (!finished.output.contains("failed, 0 skipped")) GTEST_SKIP() << "programs are missing:\n" << finished.output;
}

TEST(VerbsPrograms, ARunInWhichNothingPassedIsNone) {
  const Finished finished = run({FAIRLEAD_SOURCE_FOLDER "/scripts/verbs_programs.sh", "--short", "--command",
                                 ordinary_user().command(), "no-such-program"});
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_THAT(finished.output, HasSubstr("0 passed, 0 failed, 0 skipped"));
}

// The client fails at once, and the server would wait for ever.
TEST(VerbsPrograms, TheServerOfAFailedClientIsEnded) {
  std::string folder = testing::TempDir() + "verbs_programs_XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string command = folder + "/fairlead";
  std::ofstream(command)
      << "#!/bin/sh\n"
         "all=\"$*\"\n"
         "case \"$all\" in *' -s -C '*) exec python3 -m http.server --bind 127.0.0.1 \"${all##*-p }\";; esac\n"
         "exit 1\n";
  ASSERT_EQ(::chmod(folder.c_str(), 0755), 0);
  ASSERT_EQ(::chmod(command.c_str(), 0755), 0);
  const Finished finished =
      run({FAIRLEAD_SOURCE_FOLDER "/scripts/verbs_programs.sh", "--short", "--command", command, "rping"}, 2min);
  std::filesystem::remove_all(folder);
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_THAT(finished.output, HasSubstr("client: 1, server: 143")) << "143 is our SIGTERM, 124 the limit of a program";
}

// Programs are killed or stopped at random moments. The other side ends or continues, and leaves nothing behind.
TEST(VerbsPrograms, OutliveTheirPeers) {
  if (const auto fault = TwoNamespaces().set_up()) GTEST_SKIP() << *fault;
  Words words{"python3", FAIRLEAD_SOURCE_FOLDER "/scripts/kill_programs.py", "--command", FAIRLEAD_COMMAND};
  words = words + split(is_full_run() ? "--instants 4" : "--instants 1 TCP shm");
  const Finished finished = run(words, 60min);
  EXPECT_EQ(finished.exit_code, 0) << finished.output << finished.error_output;
  EXPECT_THAT(finished.output, HasSubstr("passed, 0 failed"));
}

TEST(VerbsProgram, DevicesAreListed) {
  if (!is_installed("ibv_devices")) GTEST_SKIP() << "ibv_devices is not installed";
  const Finished finished = run(under_fairlead("--devices 2", {"ibv_devices"}));
  EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
  EXPECT_THAT(finished.output, HasSubstr("fairlead0"));
  EXPECT_THAT(finished.output, HasSubstr("fairlead1"));
}

TEST(VerbsProgram, DeviceTellsOfItselfInBothPersonalities) {
  if (!is_installed("ibv_devinfo")) GTEST_SKIP() << "ibv_devinfo is not installed";
  const Finished roce = run(under_fairlead("", {"ibv_devinfo", "-v"}));
  EXPECT_EQ(roce.exit_code, 0) << roce.error_output;
  EXPECT_THAT(roce.output, HasSubstr("PORT_ACTIVE"));
  EXPECT_THAT(roce.output, HasSubstr("Ethernet"));
  EXPECT_THAT(roce.output, HasSubstr("RoCE v2"));
  const Finished infiniband = run(under_fairlead("--personality ib", {"ibv_devinfo"}));
  EXPECT_THAT(infiniband.output, HasSubstr("InfiniBand"));
}

TEST(VerbsProgram, SysIsMadeUpForProgramsAndTheirChildren) {
  const Finished finished = run(
      under_fairlead("", {"sh", "-c",
                          "cat /sys/class/infiniband/fairlead0/ports/1/link_layer; ls "
                          "/sys/class/infiniband_verbs/uverbs0; test -c /dev/infiniband/uverbs0 && echo character"}));
  EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
  EXPECT_THAT(finished.output, HasSubstr("Ethernet"));
  EXPECT_THAT(finished.output, HasSubstr("ibdev"));
  EXPECT_THAT(finished.output, HasSubstr("character"));
}

// A container is a process in namespaces of its own. Its programs, and what they start, see the device.
TEST(VerbsProgram, ContainersInheritTheDevice) {
  if (!is_installed("ibv_devices")) GTEST_SKIP() << "ibv_devices is not installed";
  if (const auto fault = TwoNamespaces().set_up()) GTEST_SKIP() << *fault;
  const Words container = split("unshare --user --map-root-user --net --mount --pid --ipc --uts --fork --mount-proc");
  const Words program{"sh", "-c", "ip link set lo up; ibv_devices; ls /sys/class/infiniband"};
  const Finished finished = run(fairlead_run("", container + program));
  EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
  const auto first = finished.output.find("fairlead0");
  EXPECT_NE(first, std::string::npos) << finished.output << finished.error_output;
  EXPECT_NE(finished.output.find("fairlead0", first + 1), std::string::npos) << finished.output;
}

// The client always has writes on their way. In a ping-pong the server may end between its acknowledgement and its
// answer, and the client then waits for ever, as it would beside any device.
TEST(VerbsProgram, ExplainsEachCompletionThatFailed) {
  if (!is_installed("ib_write_bw")) GTEST_SKIP() << "ib_write_bw is not installed";
  const int port = free_port();
  const Words program = split(fmt::format("ib_write_bw -F -n 100000000 -p {}", port));
  ChildProcess server(fairlead_run("", program));
  ASSERT_TRUE(wait_until_listening(server, port)) << server.error_output();
  ChildProcess client(fairlead_run("--explain", program + Words{"127.0.0.1"}));
  ASSERT_TRUE(wait_until_busy(client.pid(), 500ms, kStartAtMost)) << client.error_output();
  server.send_signal(SIGKILL);
  EXPECT_GT(client.wait(kProgramAtMost), 0) << client.output();
  EXPECT_THAT(client.error_output(), HasSubstr("completions that failed:\n  qp 0x"));
  EXPECT_THAT(client.error_output(), HasSubstr("x retries exceeded (wr_id"));
}

TEST(VerbsProgram, ExplainsThatTheSettingExcludesSharedMemory) {
  if (!is_installed("ibv_rc_pingpong")) GTEST_SKIP() << "ibv_rc_pingpong is not installed";
  const int port = free_port();
  const Words program = split(fmt::format("ibv_rc_pingpong -g 0 -n 100 -p {}", port));
  ChildProcess server(fairlead_run("--path udp", program));
  ASSERT_TRUE(wait_until_listening(server, port)) << server.error_output();
  const Finished client = run(fairlead_run("--path udp --explain", program + Words{"127.0.0.1"}), kProgramAtMost);
  EXPECT_EQ(client.exit_code, 0) << client.error_output;
  EXPECT_THAT(client.error_output, testing::ContainsRegex("reached by udp, not shm: the setting path is udp"));
}

// libfabric opens the device several times.
TEST(VerbsProgram, IsExplainedEachDeviceOnce) {
  if (!is_installed("fi_info")) GTEST_SKIP() << "fi_info is not installed";
  const std::string told = run(fairlead_run("--explain", {"fi_info", "-p", "verbs"})).error_output;
  const auto first = told.find("fairlead0 at ");
  ASSERT_NE(first, std::string::npos) << told;
  EXPECT_EQ(told.find("fairlead0 at ", first + 1), std::string::npos) << told;
}

TEST(VerbsProgram, SymbolsAreThoseOfTheRealLibrary) {
  const std::string symbols = "nm -D --with-symbol-versions {} | awk '/@@/ {{print $3}}' | sort";
  const Finished real =
      run({"sh", "-c",
           fmt::format(fmt::runtime(symbols), "$(/sbin/ldconfig -p | awk '/libibverbs.so.1 / {print $NF; exit}')")});
  if (real.output.empty()) GTEST_SKIP() << "no libibverbs to compare with";
  const Finished preload = run(fairlead_run("", {"sh", "-c", "echo ${LD_PRELOAD%%:*}"}));
  const std::string library = preload.output.substr(0, preload.output.find('\n'));
  EXPECT_EQ(run({"sh", "-c", fmt::format(fmt::runtime(symbols), library)}).output, real.output);
}

// Rank 0 is the server. Rank 1 retries until it is up.
TEST(VerbsProgram, StandsBeforeEachRankOfMpirun) {
  if (!is_installed("mpirun") || !is_installed("ibv_rc_pingpong"))
    GTEST_SKIP() << "mpirun or ibv_rc_pingpong is missing";
  const std::string pingpong = fmt::format("ibv_rc_pingpong -g 0 -n 100 -c -p {}", free_port());
  const std::string program = fmt::format(
      "if [ $OMPI_COMM_WORLD_RANK = 0 ]; then exec {0}; fi\n"
      "for i in $(seq 400); do {0} 127.0.0.1 2>/dev/null && exit 0; sleep 0.05; done; exit 1",
      pingpong);
  const Finished finished = run(Words{"mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"} +
                                fairlead_run("--path shm", {"sh", "-c", program}));
  EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
  const auto first = finished.output.find("bytes in");
  EXPECT_NE(first, std::string::npos) << finished.output;
  EXPECT_NE(finished.output.find("bytes in", first + 1), std::string::npos) << finished.output;  // both ranks
}

TEST(VerbsProgram, ExitCodesAndSignalsAreTheProgramsOwn) {
  EXPECT_EQ(run(under_fairlead("", {"sh", "-c", "exit 7"})).exit_code, 7);
  EXPECT_EQ(run(under_fairlead("", {"sh", "-c", "kill -TERM $$"})).exit_code, 128 + SIGTERM);
  EXPECT_EQ(run(under_fairlead("", {"no-such-program"})).exit_code, 127);
}

TEST(VerbsProgram, WrongOptionsAreToldBeforeItStarts) {
  for (const char* options : {"--path foo", "--personality x", "--devices 0", "--devices 17", "--fault bad=3",
                              "--address 203.0.113.77", "--nonsense"}) {
    const Finished finished = run(fairlead_run(options, {"echo", "started"}));
    EXPECT_EQ(finished.exit_code, 2) << options << finished.error_output;
    EXPECT_EQ(finished.output, "") << options;
    EXPECT_THAT(finished.error_output, testing::StartsWith("fairlead: ")) << options;
  }
}

// Datagrams to a group travel as IP multicast. The receiver listens at the port for groups.
void expect_multicast(const TwoNamespaces& two) {
  if (!is_installed("mckey")) GTEST_SKIP() << "mckey is not installed";
  const Words program = split("mckey -m 239.83.0.1 -C 20 -b");
  ChildProcess receiver(two.enter_first(fairlead_run("", program + Words{"10.77.0.1"})));
  ASSERT_TRUE(wait_until_listening(receiver, 20480 + 1024)) << receiver.output() << receiver.error_output();
  const Finished sender = run(two.enter_second(fairlead_run("", program + split("10.77.0.2 -s"))), kProgramAtMost);
  EXPECT_EQ(sender.exit_code, 0) << sender.output << sender.error_output;
  EXPECT_EQ(receiver.wait(kProgramAtMost), 0) << receiver.output() << receiver.error_output();
}

// The IPv6 loopback interface has no route to multicast groups.
void expect_refusal_of_groups(const TwoNamespaces& two) {
  if (!is_installed("mckey") || !std::ifstream("/proc/net/if_inet6")) return;
  const Words program = split("mckey -m ff0e::83 -b ::1 -C 1");
  const Finished refused = run(two.enter_first(fairlead_run("--address ::1", program)), kProgramAtMost);
  EXPECT_THAT(refused.error_output, HasSubstr("there is no route to the group")) << refused.output;
  EXPECT_THAT(refused.error_output, HasSubstr("ip link set dev NAME multicast on")) << "what helps";
}

// A program of each kind that connects by librdmacm.
void expect_managed_programs(const TwoNamespaces& two) {
  constexpr std::pair<const char*, const char*> kPrograms[] = {
      {"rping -s -C 5 -p PORT", "rping -c -a 10.77.0.1 -C 5 -p PORT"},
      {"rdma_xserver -c x -p PORT", "rdma_xclient -c x -s 10.77.0.1 -p PORT"},
      {"rstream -T b -S 4096 -I 5 -C 5 -p PORT", "rstream -T b -S 4096 -I 5 -C 5 -p PORT -s 10.77.0.1"},
      {"fi_pingpong -p verbs -e msg -I 50 -S 64 -B PORT", "fi_pingpong -p verbs -e msg -I 50 -S 64 -P PORT 10.77.0.1"},
      {"fi_pingpong -p verbs;ofi_rxm -e rdm -I 50 -S 64 -B PORT",
       "fi_pingpong -p verbs;ofi_rxm -e rdm -I 50 -S 64 -P PORT 10.77.0.1"},
  };
  for (const auto& [server_line, client_line] : kPrograms) {
    const int port = free_port();
    const auto words = [port](const char* line) {
      Words all = split(line);
      std::ranges::replace(all, std::string("PORT"), std::to_string(port));
      return all;
    };
    if (!is_installed(words(client_line).front())) GTEST_SKIP() << words(client_line).front() << " is not installed";
    ChildProcess server(two.enter_first(fairlead_run("", words(server_line))));
    ASSERT_TRUE(wait_until_listening(server, port)) << server_line << server.output() << server.error_output();
    const Finished client = run(two.enter_second(fairlead_run("", words(client_line))), kProgramAtMost);
    EXPECT_EQ(client.exit_code, 0) << client_line << "\n" << client.output << client.error_output;
    if (client.exit_code != 0) continue;  // the server would wait
    EXPECT_EQ(server.wait(kProgramAtMost), 0) << server_line << "\n" << server.output() << server.error_output();
  }
}

TEST(VerbsProgram, RunBetweenTwoNamespaces) {
  TwoNamespaces two;
  if (const auto fault = two.set_up()) GTEST_SKIP() << *fault;
  const std::function<Words(const Words&)> first = [&two](const Words& words) { return two.enter_first(words); };
  const std::function<Words(const Words&)> second = [&two](const Words& words) { return two.enter_second(words); };
  for (const char* program :
       {"ibv_rc_pingpong -g 0 -n 200 -c", "ib_write_bw -n 200", "ib_send_lat -n 200", "ib_send_lat -R -n 200"}) {
    expect_success(program, "10.77.0.1", first, second);
  }
  expect_managed_programs(two);
  expect_multicast(two);
  expect_refusal_of_groups(two);
}

}  // namespace
}  // namespace fairlead::tests
