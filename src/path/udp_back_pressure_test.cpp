// A slow device fills the send buffer: the path must report it, and everything that it accepted must arrive. Runs in
// its own network namespace, whose loopback passes 1 kB/s until the buffer has been full, and 20 MB/s from then on.

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>

#include <cstdlib>
#include <cstring>

#include "path/traffic_for_tests.hpp"
#include "path/udp_path.hpp"

namespace fairlead::path {
namespace {

constexpr int kNoNamespace = 77;

bool slow_down_loopback() {
  return ::unshare(CLONE_NEWNET) == 0 && std::system("ip link set lo up >/dev/null 2>&1") == 0 &&
         std::system("tc qdisc add dev lo root tbf rate 8kbit burst 2k limit 64m >/dev/null 2>&1") == 0;
}
bool speed_up_loopback() {
  return std::system("tc qdisc change dev lo root tbf rate 160mbit burst 256k limit 64m >/dev/null 2>&1") == 0;
}

int exit_code_of(bool wants_gso) {
  constexpr std::uint32_t kTrains = 100;
  constexpr std::uint32_t kSize = 1400;
  constexpr std::uint32_t kInTrain = 40;
  constexpr int kLooksBeforeFull = 10'000;  // at most
  UdpOptions options;
  options.wants_gso = wants_gso;
  options.send_buffer_bytes = 256u << 10;
  options.receive_buffer_bytes = 32u << 20;
  const auto left = open_path("127.0.0.1", options);
  const auto right = open_path("127.0.0.1", options);
  std::vector<int> seen(kTrains * kInTrain, 0);
  Bytes bytes(kSize * kInTrain);
  std::uint32_t sent = 0;
  bool is_slow = true;
  for (int look = 0; look < 10'000'000 && (sent < kTrains || std::count(seen.begin(), seen.end(), 0) > 0); ++look) {
    for (std::uint32_t index = 0; index < kInTrain; ++index) {
      const std::uint32_t number = sent * kInTrain + index;
      std::memcpy(bytes.data() + index * kSize, &number, sizeof(number));
    }
    if (sent < kTrains && send_bytes(*left, right->address(), bytes, kSize)) sent += 1;
    if (is_slow && (left->counters().send_later != 0 || look == kLooksBeforeFull)) {
      if (!speed_up_loopback()) return kNoNamespace;
      is_slow = false;
    }
    std::array<Arrival, 8> arrivals;
    std::vector<Datagram> found;
    const std::size_t taken = right->collect(arrivals, {});
    for (const Arrival& arrival : std::span(arrivals).first(taken)) cut(arrival, found);
    for (const Datagram& datagram : found) {
      std::uint32_t number = 0;
      std::memcpy(&number, datagram.bytes.data(), sizeof(number));
      seen.at(number) += 1;
    }
  }
  if (std::count(seen.begin(), seen.end(), 0) > 0) return 1;  // accepted, but lost
  if (left->counters().send_later == 0) return 2;             // never reported a full buffer
  if (left->counters().send_failed != 0) return 3;
  // A train that the kernel cuts is accepted whole or not at all; one sent singly may be repeated in part.
  if (wants_gso && std::count(seen.begin(), seen.end(), 1) != static_cast<long>(seen.size())) return 4;
  return 0;
}

TEST(UdpBackPressure, SaysLaterAndLosesNothing) {
  for (const bool wants_gso : {true, false}) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(slow_down_loopback() ? exit_code_of(wants_gso) : kNoNamespace);
    int status = -1;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == kNoNamespace) GTEST_SKIP() << "needs the right to make a network namespace, ip and tc";
    EXPECT_EQ(WEXITSTATUS(status), 0) << "gso " << wants_gso;
  }
}

}  // namespace
}  // namespace fairlead::path
