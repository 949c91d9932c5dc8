// Unmodified programs of Debian under `fairlead run`: two processes that find each other by what they exchange over TCP
// themselves. A short form of each; FAIRLEAD_LONG_TESTS=1 adds all sizes and modes.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include "tests/child_process.hpp"
#include "tests/two_namespaces.hpp"

namespace fairlead::tests {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Words = std::vector<std::string>;

constexpr auto kStartAtMost = 20s, kRunAtMost = 60s;

bool is_long() {
  return std::getenv("FAIRLEAD_LONG_TESTS") != nullptr;
}

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

/// What makes of root the user nobody; nothing if we are not root, or nobody cannot read the build.
const Words& as_ordinary_user() {
  static const Words words = [] {
    Words prefix{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"};
    if (::geteuid() != 0 || run(prefix + Words{"test", "-x", FAIRLEAD_COMMAND}, 10s).exit_code != 0) return Words{};
    return prefix;
  }();
  return words;
}

Words fairlead_run(const std::string& options, const Words& program) {
  return Words{FAIRLEAD_COMMAND, "run"} + split(options) + Words{"--"} + program;
}

Words under_fairlead(const std::string& options, const Words& program) {
  return as_ordinary_user() + fairlead_run(options, program);
}

/// Whether the process, in its own network namespace, listens on this TCP port.
bool listens(pid_t pid, int port) {
  const std::string wanted = fmt::format(":{:04X} ", port);
  for (const char* family : {"tcp", "tcp6"}) {
    std::ifstream table(fmt::format("/proc/{}/net/{}", pid, family));
    for (std::string line; std::getline(table, line);) {
      constexpr const char* kListening = " 0A ";
      const auto local = line.find(wanted);
      if (local != std::string::npos && local < 50 && line.find(kListening) != std::string::npos) return true;
    }
  }
  return false;
}

bool wait_until_listening(ChildProcess& process, int port) {
  const auto deadline = std::chrono::steady_clock::now() + kStartAtMost;
  while (std::chrono::steady_clock::now() < deadline) {
    if (listens(process.pid(), port)) return true;
    if (process.wait(5ms) != -1) return false;
  }
  return false;
}

bool is_installed(const std::string& program) {
  return run({"sh", "-c", "command -v " + program}, 10s).exit_code == 0;
}

struct Pairing {
  std::string options;  // of fairlead run
  std::string program;  // with its arguments but for the port and the server's address
};

void PrintTo(const Pairing& pairing, std::ostream* out) {
  *out << pairing.program << ' ' << pairing.options;
}

/// Runs server and client; both must end well. `place_server` and `place_client` say where.
template <typename Place>
void expect_success(const Pairing& pairing, const std::string& server_address, Place place_server, Place place_client) {
  const Words program = split(pairing.program);
  if (!is_installed(program.front())) GTEST_SKIP() << program.front() << " is not installed";
  const int port = free_port();
  const bool is_qperf = program.front() == "qperf";
  const Words with_port =
      is_qperf ? Words{"qperf", "-lp", std::to_string(port)} : program + Words{"-p", std::to_string(port)};
  ChildProcess server(place_server(fairlead_run(pairing.options, with_port)));
  ASSERT_TRUE(wait_until_listening(server, port)) << server.output() << server.error_output();
  Words client_words = with_port + Words{server_address};
  if (is_qperf) client_words = client_words + Words(program.begin() + 1, program.end());
  const Finished client = run(place_client(fairlead_run(pairing.options, client_words)), kRunAtMost);
  EXPECT_EQ(client.exit_code, 0) << pairing.program << "\n" << client.output << client.error_output;
  if (is_qperf) {
    server.send_signal(SIGTERM);
    EXPECT_THAT(client.output, HasSubstr("=")) << client.output;
    return;
  }
  EXPECT_EQ(server.wait(kRunAtMost), 0) << pairing.program << "\nserver: " << server.output() << server.error_output();
}

const auto here = [](const Words& words) { return as_ordinary_user() + words; };

class VerbsPrograms : public testing::TestWithParam<Pairing> {};

TEST_P(VerbsPrograms, RunOnOneHost) {
  expect_success(GetParam(), "127.0.0.1", here, here);
}

std::vector<Pairing> pairings() {
  std::vector<Pairing> all{
      {"", "ibv_rc_pingpong -g 0 -n 200 -c"},
      {"", "ibv_rc_pingpong -g 0 -n 100 -e -N -s 65536 -c"},
      {"", "ibv_uc_pingpong -g 0 -n 100 -e -m 1024"},
      {"", "ibv_ud_pingpong -g 0 -n 100 -s 1024"},
      {"", "ibv_srq_pingpong -g 0 -n 100 -q 8"},
      {"--personality ib", "ibv_rc_pingpong -n 100 -c"},
      {"--path udp", "ib_send_lat -n 200 -s 64"},
      {"--path udp", "ib_send_bw -n 200 -s 65536 -b"},
      {"--path udp", "ib_write_lat -n 200"},
      {"--path udp", "ib_write_bw -n 200 -q 4"},
      {"--path udp", "ib_read_lat -n 200 -e"},
      {"--path udp", "ib_read_bw -n 200 -s 65536"},
      {"--path udp", "ib_atomic_lat -n 200"},
      {"--path udp", "ib_atomic_bw -n 200 -A CMP_AND_SWAP"},
      {"--path udp", "ib_send_lat -c UD -n 200 -s 1024"},
      {"--path udp", "ib_write_bw -c UC -n 200"},
      {"--personality ib", "qperf -t 1 rc_lat ud_lat"},  // it sends no GID, so it needs LIDs
      {"--fault drop=1%,reorder=5:16,duplicate=1%", "ib_write_bw -n 500 -s 65536"},
      {"--fault drop=1%,reorder=5:16,duplicate=1%", "ib_send_lat -n 500"},
  };
  if (!is_long()) return all;
  for (const char* program :
       {"ibv_rc_pingpong -s 1048576 -n 50 -c", "ibv_rc_pingpong -t -n 200", "ibv_rc_pingpong -j -n 100",
        "ibv_rc_pingpong -m 256 -n 200 -c", "ibv_rc_pingpong -m 4096 -n 200 -e", "ibv_uc_pingpong -s 1048576 -n 50",
        "ibv_srq_pingpong -n 200 -e -q 16", "ibv_ud_pingpong -n 200 -e"}) {
    all.push_back({"", std::string(program) + " -g 0"});
  }
  for (const char* path : {"--path udp", "--path shm"}) {
    for (const char* program :
         {"ib_send_lat", "ib_send_bw", "ib_write_lat", "ib_write_bw", "ib_read_lat", "ib_read_bw"}) {
      all.push_back({path, fmt::format("{} -a -n 100", program)});
    }
    for (const char* program : {"ib_send_lat -c UC", "ib_send_bw -c UD", "ib_send_bw -c UC", "ib_send_lat -c UD"}) {
      all.push_back({path, fmt::format("{} -n 200", program)});
    }
    all.push_back({path, "ib_write_lat -c UC -n 20"});  // over UDP both ends spin on their memory: a turn costs slices
    for (const char* program : {"ib_send_bw", "ib_write_bw", "ib_read_bw", "ib_atomic_bw"}) {
      all.push_back({path, fmt::format("{} -n 500 -q 16", program)});
      all.push_back({path, fmt::format("{} -n 500 -b", program)});
    }
    // There are no events of writes, says perftest.
    for (const char* program : {"ib_send_bw", "ib_read_bw", "ib_atomic_bw", "ib_send_lat", "ib_atomic_lat"}) {
      all.push_back({path, fmt::format("{} -n 500 -e", program)});
    }
    all.push_back({path, "ib_send_bw -n 500 -r 256 --use-srq -q 4"});
    all.push_back({path, "ib_send_lat -n 200 -I 64 -s 32"});
    all.push_back({path, "ib_write_bw -n 200 -I 64 -s 32"});
  }
  for (const char* test : {"rc_bw", "rc_rdma_read_lat", "rc_rdma_write_lat", "rc_rdma_write_poll_lat",
                           "rc_fetch_add_mr", "uc_lat", "uc_bw", "rc_rdma_write_bw"}) {
    all.push_back({"--personality ib --path udp", fmt::format("qperf -t 1 {}", test)});
  }
  all.push_back({"--personality ib --path udp", "qperf -t 1 ud_bw"});
  for (const char* program : {"ib_send_bw -s 1048576 -n 100", "ib_read_bw -n 500", "ib_atomic_lat -n 500",
                              "ib_write_lat -n 500", "ibv_rc_pingpong -g 0 -n 500 -c"}) {
    all.push_back({"--path udp --fault drop=1%,reorder=5:16,duplicate=1%", program});
  }
  return all;
}

std::string name_of(const testing::TestParamInfo<Pairing>& info) {
  std::string name = info.param.program + " " + info.param.options;
  for (char& each : name) {
    if (!std::isalnum(static_cast<unsigned char>(each))) each = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Pairs, VerbsPrograms, testing::ValuesIn(pairings()), name_of);

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

// The server is rank 0; rank 1 asks until it is there.
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

TEST(VerbsProgram, RunBetweenTwoNamespaces) {
  TwoNamespaces two;
  if (const auto fault = two.set_up()) GTEST_SKIP() << *fault;
  const std::function<Words(const Words&)> first = [&two](const Words& words) { return two.enter_first(words); };
  const std::function<Words(const Words&)> second = [&two](const Words& words) { return two.enter_second(words); };
  for (const char* program : {"ibv_rc_pingpong -g 0 -n 200 -c", "ib_write_bw -n 200", "ib_send_lat -n 200"}) {
    expect_success({"", program}, "10.77.0.1", first, second);
  }
}

}  // namespace
}  // namespace fairlead::tests
