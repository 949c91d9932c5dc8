// The rivals' output, as far as we parse it.

#include "tools/perf/rivals.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace fairlead::tools {
namespace {

const Rival& rival(std::string_view name) {
  return *std::ranges::find(all_rivals(), name, &Rival::name);
}

constexpr RivalTask kLatency{.op = PerfOp::latency, .size = 8, .time = std::chrono::seconds{1}, .port = 7};
constexpr RivalTask kBandwidth{.op = PerfOp::bandwidth, .size = 65'536, .time = std::chrono::seconds{1}, .port = 7};

TEST(PerfRivals, UcxTellsLatencyAndBandwidthInOneLine) {
  const char* output =
      "+------+\n"
      "                     50000      3.900     4.125     4.250      812.50    1000.00       13000       16000\n";
  EXPECT_DOUBLE_EQ(rival("ucx-tcp").read(kLatency, output)->one_way_us, 3.9);
  EXPECT_DOUBLE_EQ(rival("ucx-tcp").read(kBandwidth, output)->gb_per_s, 1.048576);
}

TEST(PerfRivals, LibfabricTellsMicrosecondsOfATransfer) {
  const char* output =
      "bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec\n"
      "8       10k     =10k     156k        0.09s      1.81       4.42       0.23\n";
  EXPECT_DOUBLE_EQ(rival("libfabric-tcp").read(kLatency, output)->one_way_us, 4.42);
}

TEST(PerfRivals, IperfTellsBitsPerSecond) {
  const char* output = R"({"end": {"sum_received": {"bits_per_second": 8e9}}})";
  EXPECT_DOUBLE_EQ(rival("iperf3").read(kBandwidth, output)->gb_per_s, 1.0);
}

TEST(PerfRivals, SockperfTellsOneWay) {
  const char* output = "sockperf: Summary: Latency is 5.123 usec\nsockperf: Total 9 observations\n";
  EXPECT_DOUBLE_EQ(rival("sockperf-udp").read(kLatency, output)->one_way_us, 5.123);
}

TEST(PerfRivals, QperfTellsItsUnit) {
  EXPECT_DOUBLE_EQ(rival("qperf-tcp").read(kLatency, "tcp_lat:\n    latency  =  8.25 us\n")->one_way_us, 8.25);
  EXPECT_DOUBLE_EQ(rival("qperf-tcp").read(kBandwidth, "tcp_bw:\n    bw  =  4.5 GB/sec\n")->gb_per_s, 4.5);
}

TEST(PerfRivals, OsuTellsALineOfTheSize) {
  const char* output = "# OSU MPI Latency Test\n# Size          Latency (us)\n8                       0.31\n";
  EXPECT_DOUBLE_EQ(rival("mpi-osu_latency").read(kLatency, output)->one_way_us, 0.31);
}

TEST(PerfRivals, WhatIsNoFigureIsNone) {
  for (const Rival& each : all_rivals()) {
    for (const char* output :
         {"", "\n", "Final: 1 2\n", "usec/xfer", "usec/xfer\n1 2\n", "{", "{}", "= \n", "Latency is x", "Latency is -1",
          "=  5 parsecs", "\n8", "\n8 x\n", "Final: 0 0 0 0 0 0 0 0 0"}) {
      EXPECT_FALSE(each.read(kLatency, output)) << each.name << " of: " << output;
      EXPECT_FALSE(each.read(kBandwidth, output)) << each.name << " of: " << output;
    }
  }
}

TEST(PerfRivals, TheirWordsNameSizeAndPort) {
  for (const Rival& each : all_rivals()) {
    for (const RivalTask& task : {kLatency, kBandwidth}) {
      const auto words = each.words(task, false);
      if (words.empty()) continue;
      const auto has = [&](std::string_view part) {
        return std::ranges::any_of(words, [&](const std::string& word) { return word.contains(part); });
      };
      EXPECT_TRUE(has(each.program)) << each.name;
      EXPECT_EQ(has("7") && each.has_server, each.has_server) << each.name;
    }
  }
}

}  // namespace
}  // namespace fairlead::tools
