// Bad input from outside. A running server gets random and mutated datagrams. It keeps serving, and counts each
// datagram by reason. Wrong command lines give one line that names the fault and exit code 2, and send nothing.
// FAIRLEAD_TEST_DATAGRAMS=1000000 sets the number of datagrams, FAIRLEAD_TEST_SEED the random seed.

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <thread>

#include "base/file_descriptor.hpp"
#include "tests/child_process.hpp"
#include "tests/environment.hpp"
#include "tests/kernel_queue.hpp"

namespace fairlead::tests {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::StartsWith;
using Json = nlohmann::json;
using Words = std::vector<std::string>;
using Datagram = std::vector<std::byte>;

/// A UDP socket of 127.0.0.1.
class Socket {
 public:
  Socket() : descriptor_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    const sockaddr_in any = loopback(0);
    EXPECT_EQ(bind(descriptor_.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any), 0);
  }

  int port() const {
    sockaddr_in own{};
    socklen_t length = sizeof own;
    getsockname(descriptor_.get(), reinterpret_cast<sockaddr*>(&own), &length);
    return ntohs(own.sin_port);
  }
  bool send_to(int port, std::span<const std::byte> bytes) const {
    const sockaddr_in to = loopback(port);
    return sendto(descriptor_.get(), bytes.data(), bytes.size(), 0, reinterpret_cast<const sockaddr*>(&to),
                  sizeof to) == static_cast<ssize_t>(bytes.size());
  }
  /// Empty if no datagram comes within `limit`.
  Datagram receive(std::chrono::milliseconds limit, int* from_port = nullptr) const {
    pollfd look{.fd = descriptor_.get(), .events = POLLIN, .revents = 0};
    if (poll(&look, 1, static_cast<int>(limit.count())) <= 0) return {};
    Datagram bytes(65536);
    sockaddr_in from{};
    socklen_t length = sizeof from;
    const ssize_t size =
        recvfrom(descriptor_.get(), bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr*>(&from), &length);
    bytes.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    if (from_port != nullptr) *from_port = ntohs(from.sin_port);
    return bytes;
  }

 private:
  static sockaddr_in loopback(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    return address;
  }

  base::FileDescriptor descriptor_;
};

class BadInput : public testing::Test {
 protected:
  void start_server() {
    server_ =
        std::make_unique<ChildProcess>(Words{FAIRLEAD_COMMAND, "bulkping", "server", "--address", address_, "--json"});
    ASSERT_TRUE(server_->wait_for_text("serving at", 20s)) << server_->error_output();
  }
  Json stop_server() {
    server_->send_signal(SIGINT);
    EXPECT_EQ(server_->wait(20s), 0) << server_->error_output();
    return Json::parse(server_->output(), nullptr, false);
  }

  /// Returns datagrams of a client that talks to the server through this process.
  std::vector<Datagram> overhear() const {
    const Socket to_client, to_server;
    ChildProcess client({FAIRLEAD_COMMAND, "bulkping", "client", "--server",
                         fmt::format("127.0.0.1@udp:{}:39:12", to_client.port()), "--loops", "2", "--bulk-size", "100K",
                         "--message-timeout", "1", "--bulk-timeout", "1", "-q"});
    std::vector<Datagram> heard;
    int client_port = 0;
    while (client.wait(0ms) < 0 && heard.size() < 200) {
      if (auto datagram = to_client.receive(1ms, &client_port); !datagram.empty()) {
        to_server.send_to(port_, datagram);
        heard.push_back(std::move(datagram));
      }
      if (const auto answer = to_server.receive(1ms); !answer.empty() && client_port != 0)
        to_client.send_to(client_port, answer);
    }
    return heard;
  }

  Datagram make_bad(const std::vector<Datagram>& heard) {
    Datagram bytes;
    if (random_() % 4 == 0) {
      bytes.resize(1 + random_() % 200);
      for (std::byte& each : bytes) each = static_cast<std::byte>(random_());
      return bytes;
    }
    bytes = heard[random_() % heard.size()];
    bytes.resize(std::min<std::size_t>(bytes.size(), 2000));
    for (std::uint64_t changes = random_() % 4; changes > 0; --changes) {
      bytes[random_() % std::min<std::size_t>(bytes.size(), random_() % 2 == 0 ? 32 : 2000)] ^=
          static_cast<std::byte>(1 + random_() % 255);
    }
    if (random_() % 4 == 0) bytes.resize(1 + random_() % bytes.size());
    return bytes;
  }

  const int port_ = free_port();
  const std::string address_ = fmt::format("127.0.0.1@udp:{}:39:12", port_);
  std::mt19937_64 random_{number_from("FAIRLEAD_TEST_SEED", 1)};
  std::unique_ptr<ChildProcess> server_;
};

TEST_F(BadInput, EveryDatagramIsAccountedForAndTheServerServesOn) {
  start_server();
  const std::vector<Datagram> heard = overhear();
  ASSERT_FALSE(heard.empty());
  const std::uint64_t count = number_from("FAIRLEAD_TEST_DATAGRAMS", 200'000);
  const Socket attacker;
  for (std::uint64_t i = 1; i <= count; ++i) {
    ASSERT_TRUE(attacker.send_to(port_, make_bad(heard))) << i;
    // The kernel drops datagrams that exceed the socket's buffer, so wait until the server catches up.
    for (int looks = 0; i % 256 == 0 && kernel_queue(port_).waiting > 0 && looks < 10'000; ++looks)
      std::this_thread::sleep_for(100us);
  }
  const Finished client =
      run({FAIRLEAD_COMMAND, "bulkping", "client", "--server", address_, "--loops", "5", "-q"}, 60s);
  EXPECT_EQ(client.exit_code, 0) << client.error_output;

  const std::uint64_t dropped_by_kernel = kernel_queue(port_).dropped;
  const Json json = stop_server();
  const Json& counters = json["counters"];
  const auto counter = [&](const std::string& name) { return counters.at(name).get<std::uint64_t>(); };
  EXPECT_EQ(json["served"]["corrupt"], 0);
  EXPECT_EQ(counter("path.datagrams_received"), counter("link.datagrams_received"));
  EXPECT_GE(counter("link.datagrams_received") + dropped_by_kernel, count);

  std::uint64_t accounted = 0, bad = 0;
  for (const auto& [name, value] : counters.items()) {
    const bool is_bad = name.starts_with("link.malformed.") || name.starts_with("link.refused.");
    bad += is_bad ? value.get<std::uint64_t>() : 0;
  }
  for (const char* kind : {"data", "acks", "hellos", "hello_acks", "hello_retries", "resets", "closes", "probes",
                           "probe_answers", "parts"}) {
    accounted += counter(fmt::format("link.{}_received", kind));
  }
  EXPECT_EQ(accounted + bad, counter("link.datagrams_received"));
  EXPECT_GT(bad + dropped_by_kernel, count / 2);
  for (const char* reason : {"too_short", "wrong_version", "wrong_checksum"}) {
    EXPECT_GT(counter(fmt::format("link.malformed.{}", reason)), 0u) << reason;
  }
}

TEST_F(BadInput, ACommandLineThatIsWrongSendsNothing) {
  const Socket server;  // receives any datagram that a command line sends
  const std::string good = fmt::format("127.0.0.1@udp:{}:39:12", server.port());
  const auto client = [&](Words more) {
    Words all{"bulkping", "client", "--server", good};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const auto client_of = [](const std::string& address) { return Words{"bulkping", "client", "--server", address}; };
  const std::vector<Words> wrong{
      {},
      {"no-such"},
      {"bulkping"},
      {"bulkping", "no-such"},
      {"perf"},
      {"perf", "latency", "--path", "tcp"},
      {"perf", "latency", "--size", "0"},
      {"perf", "latency", "--size", "8,,9"},
      {"perf", "bandwidth", "--seconds", "-1"},
      {"perf", "rate", "--cpus", "0"},
      {"explain", "no-such"},
      client({"--no-such"}),
      client({"--loops"}),
      client({"--loops", "0"}),
      client({"--loops", "1x"}),
      client({"--loops", "99999999999"}),
      client({"--threads", "33"}),
      client({"--bulk-size", "0"}),
      client({"--bulk-size", "2G"}),
      client({"--bulk-size", "1.3K"}),
      client({"--bulk-size", ""}),
      client({"--message-size", "127"}),
      client({"--message-size", "1M"}),
      client({"--receive-size-min", "64K"}),
      client({"--message-timeout", "0"}),
      client({"--bulk-timeout", "nan"}),
      client({"--portal", "64"}),
      client({"--tmid", "4096"}),
      client({"--tmid", "x"}),
      client({"--set", "no-such=1"}),
      client({"--set", "spin"}),
      client({"--set", "spin=x"}),
      client({"--set", "ack_delay=0"}),
      client({"--address", "127.0.0.1@udp:0"}),
      client({"-q", "-v"}),
      client_of(""),
      client_of("127.0.0"),
      client_of("127.0.0.1@tcp"),
      client_of("127.0.0.1@udp:x"),
      client_of("127.0.0.1@udp:65536"),
      client_of("127.0.0.1@udp:*"),
      client_of("127.0.0.1@udp:20480:0:1"),
      client_of("127.0.0.1@udp:20480:64:1"),
      client_of("127.0.0.1@udp:20480:39:0"),
      client_of("127.0.0.1@udp:20480:39:*"),
      client_of("127.0.0.1@udp:20480:39:12:1"),
      client_of("[::1"),
      {"bulkping", "server", "--address", good, "--buffers", "3"},
      {"bulkping", "server", "--address", good, "--memory", "x"},
  };
  for (const Words& words : wrong) {
    Words all{FAIRLEAD_COMMAND};
    all.insert(all.end(), words.begin(), words.end());
    const Finished finished = run(all, 20s);
    const std::string line = fmt::format("{}", fmt::join(words, " "));
    EXPECT_EQ(finished.exit_code, 2) << line << ": " << finished.error_output;
    EXPECT_THAT(finished.error_output, StartsWith("fairlead: ")) << line;
    EXPECT_EQ(std::ranges::count(finished.error_output, '\n'), 1) << line << ": " << finished.error_output;
    EXPECT_EQ(finished.output, "") << line;
  }
  EXPECT_TRUE(server.receive(0ms).empty());
}

}  // namespace
}  // namespace fairlead::tests
