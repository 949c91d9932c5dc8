#include "path/faulty_path.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <span>

#include "path/sim_network.hpp"
#include "path/traffic_for_tests.hpp"

namespace fairlead::path {
namespace {

using namespace std::chrono_literals;

/// The arrivals of a numbered datagram.
struct Seen {
  std::uint32_t number = 0;
  base::Instant at;
  bool is_intact = false;
  auto operator<=>(const Seen&) const = default;
};

base::SocketAddress host(const char* ip) {
  return *base::SocketAddress::from_ip(ip, 20480);
}

Bytes numbered(std::uint32_t number, std::uint32_t size) {
  Bytes bytes = pattern(size, number);
  std::memcpy(bytes.data(), &number, sizeof(number));
  return bytes;
}

/// A faulty host and two honest ones, on a network without faults or delay. The second one drives time.
class World {
 public:
  explicit World(std::string_view plan, const SimLink& link = {.delay = {}}) : network_(1) {
    network_.set_default_link(link);
    left = std::make_unique<FaultyPath>(*network_.attach(host("10.0.0.1")), *FaultPlan::parse(plan));
    right = *network_.attach(host("10.0.0.2"), {.receive_buffer_bytes = 64u << 20});
    third = *network_.attach(host("10.0.0.3"));
  }

  /// Sends a train of datagrams with the next numbers, each of `size` bytes, in pieces that do not end where datagrams
  /// do.
  bool send(std::uint32_t count, std::uint32_t size, const Path* to = nullptr) {
    Bytes bytes;
    for (std::uint32_t index = 0; index < count; ++index) {
      const Bytes one = numbered(next_ + index, size);
      bytes.insert(bytes.end(), one.begin(), one.end());
    }
    std::vector<iovec> pieces;
    for (std::size_t at = 0; at < bytes.size(); at += 777)
      pieces.push_back({bytes.data() + at, std::min<std::size_t>(777, bytes.size() - at)});
    const Train train{to == nullptr ? right->address() : to->address(), pieces, size};
    if (left->send(std::span(&train, 1), now) == 0) return false;
    next_ += count;
    look();
    return true;
  }

  /// Advances time as long as something is due.
  void run() {
    std::array<Arrival, 4> ignored;
    for (int steps = 0; steps < 1'000'000; ++steps) {
      const base::Instant next = std::min(network_.next_event(), left->next_deadline());
      if (next == base::kNever) return;
      now = std::max(now, next);
      left->collect(ignored, now);
      look();
    }
    FAIL() << "something is due for ever";
  }

  /// Takes the datagrams that have arrived by now.
  void look() {
    network_.advance(now);
    for (Path* path : {right.get(), third.get()}) {
      std::array<Arrival, 8> arrivals;
      for (std::size_t taken = 1; taken > 0;) {
        taken = path->collect(arrivals, now);
        std::vector<Datagram> datagrams;
        for (const Arrival& arrival : std::span(arrivals).first(taken)) cut(arrival, datagrams);
        for (const Datagram& datagram : datagrams) {
          std::uint32_t number = 0;
          std::memcpy(&number, datagram.bytes.data(), sizeof(number));
          const auto size = static_cast<std::uint32_t>(datagram.bytes.size());
          seen.push_back({number, now, datagram.bytes == numbered(number, size)});
        }
      }
    }
  }

  std::vector<std::uint32_t> numbers() const {
    std::vector<std::uint32_t> result;
    for (const Seen& one : seen) result.push_back(one.number);
    return result;
  }

  const FaultCounters& counters() const { return *left->fault_counters(); }

 private:
  SimNetwork network_;
  std::uint32_t next_ = 0;

 public:
  std::unique_ptr<Path> left, right, third;
  base::Instant now{1s};
  std::vector<Seen> seen;
};

std::vector<std::uint32_t> up_to(std::uint32_t count) {
  std::vector<std::uint32_t> result(count);
  for (std::uint32_t number = 0; number < count; ++number) result[number] = number;
  return result;
}

TEST(FaultyPath, WithoutFaultsTrainsGoOnWhole) {
  World world("");
  ASSERT_TRUE(world.send(40, 1400));
  EXPECT_EQ(world.left->counters().send_calls, 1u);
  EXPECT_EQ(world.numbers(), up_to(40));
  EXPECT_TRUE(std::ranges::all_of(world.seen, &Seen::is_intact));
  EXPECT_EQ(world.left->next_deadline(), base::kNever);
  EXPECT_EQ(world.counters().offered, 40u);
  EXPECT_EQ(world.left->name(), "sim+faulty");
  EXPECT_EQ(world.right->fault_counters(), nullptr);
}

TEST(FaultyPath, SharesAreNearWhatWasAsked) {
  World world("drop=5%,duplicate=2%,corrupt=1%,reorder=3%:1:8,seed=7");
  constexpr std::uint32_t kCount = 40'000;
  for (std::uint32_t sent = 0; sent < kCount; sent += 40) ASSERT_TRUE(world.send(40, 100));
  world.run();
  const FaultCounters& counters = world.counters();
  EXPECT_EQ(counters.offered, kCount);
  EXPECT_NEAR(static_cast<double>(counters.dropped), kCount * 0.05, kCount * 0.005);
  EXPECT_NEAR(static_cast<double>(counters.duplicated), kCount * 0.95 * 0.02, kCount * 0.003);
  EXPECT_NEAR(static_cast<double>(counters.corrupted), kCount * 0.95 * 0.01, kCount * 0.002);
  EXPECT_NEAR(static_cast<double>(counters.reordered), kCount * 0.95 * 0.03, kCount * 0.004);
  EXPECT_EQ(world.seen.size(), counters.offered - counters.dropped + counters.duplicated);
  EXPECT_EQ(std::ranges::count(world.seen, false, &Seen::is_intact), static_cast<std::int64_t>(counters.corrupted));
  EXPECT_EQ(counters.held, 0u);
}

TEST(FaultyPath, LossesComeInRunsAndKeepTheirShare) {
  World world("drop=4%,burst=40,seed=3");
  constexpr std::uint32_t kCount = 200'000;
  for (std::uint32_t sent = 0; sent < kCount; sent += 50) ASSERT_TRUE(world.send(50, 40));
  const FaultCounters& counters = world.counters();
  EXPECT_NEAR(static_cast<double>(counters.dropped), kCount * 0.04, kCount * 0.008);
  std::map<std::uint32_t, std::uint32_t> gaps;  // length, how many
  for (std::size_t i = 1; i < world.seen.size(); ++i) ++gaps[world.seen[i].number - world.seen[i - 1].number - 1];
  gaps.erase(0);
  for (const auto& [length, times] : gaps) EXPECT_EQ(length % 40, 0u) << times << " gaps of " << length;
  EXPECT_GT(gaps[40], 100u);
}

TEST(FaultyPath, EverythingMayBeLost) {
  World world("drop=100%");
  ASSERT_TRUE(world.send(40, 100));
  EXPECT_TRUE(world.seen.empty());
  EXPECT_EQ(world.left->counters().send_calls, 0u);
  EXPECT_EQ(world.counters().dropped, 40u);
}

TEST(FaultyPath, ReorderedDatagramsFallBehindByTheDistancesAsked) {
  World world("reorder=0.5%:5:64,seed=11");
  constexpr std::uint32_t kCount = 40'000;
  for (std::uint32_t sent = 0; sent < kCount; sent += 40) ASSERT_TRUE(world.send(40, 100));
  world.run();
  ASSERT_EQ(world.seen.size(), kCount);
  std::map<std::uint32_t, std::uint32_t> distances;
  for (std::size_t i = 0; i < world.seen.size(); ++i) {
    const auto before = std::span(world.seen).first(i).last(std::min<std::size_t>(i, 200));
    const auto later =
        std::ranges::count_if(before, [&](const Seen& one) { return one.number > world.seen[i].number; });
    if (later > 0) ++distances[static_cast<std::uint32_t>(later)];
  }
  // A held datagram that other held ones pass falls back a little less.
  EXPECT_GE(distances.begin()->first, 3u);
  EXPECT_LE(distances.rbegin()->first, 64u);
  EXPECT_GT(distances.size(), 50u);
  EXPECT_NEAR(static_cast<double>(world.counters().reordered), kCount * 0.005, kCount * 0.001);
}

TEST(FaultyPath, OtherPeersDatagramsDoNotCountAsComingBy) {
  World world("reorder=100%:2:2,hold=5ms");
  ASSERT_TRUE(world.send(1, 100));
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(world.send(1, 100, world.third.get()));
  EXPECT_TRUE(world.seen.empty());
  ASSERT_TRUE(world.send(1, 100));
  EXPECT_TRUE(world.seen.empty());
  ASSERT_TRUE(world.send(1, 100));
  EXPECT_EQ(world.numbers(), std::vector<std::uint32_t>{0});
}

TEST(FaultyPath, AHeldDatagramComesOutInTimeThoughNothingElseHappens) {
  World world("reorder=100%:5:64,hold=3ms,delay=1ms");
  const base::Instant sent = world.now;
  ASSERT_TRUE(world.send(1, 100));
  EXPECT_EQ(world.left->next_deadline(), sent + 3ms);
  world.run();
  ASSERT_EQ(world.seen.size(), 1u);
  EXPECT_EQ(world.seen[0].at, sent + 4ms);
  EXPECT_EQ(world.counters().reorder_expired, 1u);
}

TEST(FaultyPath, DelaysEachDatagramAndKeepsTheOrder) {
  World world("delay=1ms");
  const base::Instant sent = world.now;
  ASSERT_TRUE(world.send(40, 1400));
  EXPECT_EQ(world.left->next_deadline(), sent + 1ms);
  EXPECT_EQ(world.counters().held, 40u);
  world.now = sent + 999us;
  std::array<Arrival, 1> ignored;
  world.left->collect(ignored, world.now);
  world.look();
  EXPECT_TRUE(world.seen.empty());
  world.run();
  EXPECT_EQ(world.numbers(), up_to(40));
  EXPECT_TRUE(std::ranges::all_of(world.seen, [&](const Seen& one) { return one.at == sent + 1ms && one.is_intact; }));
}

TEST(FaultyPath, JitterSpreadsArrivals) {
  World world("delay=1ms,jitter=2ms,duplicate=10%");
  const base::Instant sent = world.now;
  ASSERT_TRUE(world.send(45, 100));
  world.run();
  EXPECT_GT(world.seen.size(), 45u);
  const auto [first, last] = std::ranges::minmax(world.seen, {}, &Seen::at);
  EXPECT_GE(first.at, sent + 1ms);
  EXPECT_LE(last.at, sent + 3ms);
  EXPECT_GT(last.at - first.at, 1ms);
  EXPECT_FALSE(std::ranges::is_sorted(world.numbers()));
}

TEST(FaultyPath, SameSeedSameRunOtherSeedOtherRun) {
  const auto run_of = [](const std::string& seed) {
    World world("drop=5%,burst=3,duplicate=5%,corrupt=5%,reorder=5%:2:9,delay=1ms,jitter=1ms,seed=" + seed);
    for (int train = 0; train < 50; ++train) {
      EXPECT_TRUE(world.send(40, 100));
      world.now += 100us;
    }
    world.run();
    return world.seen;
  };
  const auto run = run_of("42");
  EXPECT_EQ(run, run_of("42"));
  EXPECT_NE(run, run_of("43"));
}

TEST(FaultyPath, AnotherFaultMovesNoOtherDraw) {
  const auto lost_with = [](std::string_view plan) {
    World world(plan);
    EXPECT_TRUE(world.send(60, 100));
    world.run();
    std::vector<std::uint32_t> arrived = world.numbers();
    std::ranges::sort(arrived);
    arrived.erase(std::unique(arrived.begin(), arrived.end()), arrived.end());
    return arrived;
  };
  EXPECT_EQ(lost_with("drop=30%,seed=5"), lost_with("drop=30%,duplicate=30%,delay=1ms,jitter=1ms,seed=5"));
}

TEST(FaultyPath, AFullPoolLetsPassUnharmedAndCounts) {
  World world("delay=10ms,corrupt=100%");
  for (int train = 0; train < 400; ++train) ASSERT_TRUE(world.send(40, 1400));
  const FaultCounters& counters = world.counters();
  EXPECT_EQ(counters.held, 8192u);
  EXPECT_EQ(counters.pool_overran, 16'000u - 8192u);
  EXPECT_EQ(world.seen.size(), counters.pool_overran);
  EXPECT_TRUE(std::ranges::all_of(world.seen, &Seen::is_intact));
  world.run();
  EXPECT_EQ(world.seen.size(), 16'000u);
  EXPECT_EQ(counters.held, 0u);
}

TEST(FaultyPath, WaitsForThePathBelowAndRefusesMoreMeanwhile) {
  // Room for 10 of these datagrams at a time; one leaves every 100 us.
  World world("duplicate=100%",
              {.delay = {}, .bytes_per_second = 10'000'000, .queue_bytes_max = 10'000, .is_senders_own = true});
  ASSERT_TRUE(world.send(8, 1000));
  EXPECT_FALSE(world.send(8, 1000));
  EXPECT_GT(world.counters().held, 0u);
  EXPECT_GT(world.left->next_deadline(), world.now);
  world.run();
  EXPECT_EQ(world.seen.size(), 16u);
  EXPECT_EQ(world.counters().lost_waiting, 0u);
  ASSERT_TRUE(world.send(1, 1000));
}

TEST(FaultyPath, AnEndingPathSendsWhatItHolds) {
  World world("delay=10s,reorder=50%:60:64,hold=10s");
  ASSERT_TRUE(world.send(40, 100));
  EXPECT_TRUE(world.seen.empty());
  world.left.reset();
  world.now += 30s;  // each leaves at the time at which it would have left
  world.look();
  EXPECT_EQ(world.seen.size(), 40u);
}

}  // namespace
}  // namespace fairlead::path
