#include "path/sim_network.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>

#include "path/traffic_for_tests.hpp"

namespace fairlead::path {
namespace {

using namespace std::chrono_literals;

class SimNetworkTest : public testing::Test {
 protected:
  static base::SocketAddress host(const char* ip) { return *base::SocketAddress::from_ip(ip, 20480); }

  /// Runs a world of two hosts; returns the numbers that reach the second one, with their times.
  struct World {
    explicit World(std::uint64_t seed, const SimLink& link, const SimPathOptions& options = {}) : network(seed) {
      network.set_default_link(link);
      left = *network.attach(host("10.0.0.1"), options);
      right = *network.attach(host("10.0.0.2"), options);
    }

    std::size_t send(std::uint32_t first, std::uint32_t count, std::uint32_t size) {
      Bytes bytes(std::size_t{count} * size);
      for (std::uint32_t index = 0; index < count; ++index) {
        const std::uint32_t number = first + index;
        std::memcpy(bytes.data() + std::size_t{index} * size, &number, sizeof(number));
      }
      const iovec piece{bytes.data(), bytes.size()};
      const Train train{right->address(), std::span(&piece, 1), size};
      return left->send(std::span(&train, 1), now);
    }

    void run() {
      while (network.next_event() != base::kNever) {
        now = network.next_event();
        network.advance(now);
        std::array<Arrival, 3> arrivals;
        for (std::size_t taken = 1; taken > 0;) {
          taken = right->collect(arrivals, now);
          for (const Arrival& arrival : std::span(arrivals).first(taken)) {
            std::vector<Datagram> datagrams;
            cut(arrival, datagrams);
            for (const Datagram& datagram : datagrams) {
              std::uint32_t number = 0;
              std::memcpy(&number, datagram.bytes.data(), std::min(sizeof(number), datagram.bytes.size()));
              trace.emplace_back(now, number);
            }
          }
        }
      }
    }

    std::vector<std::uint32_t> numbers() const {
      std::vector<std::uint32_t> result;
      for (const auto& [at, number] : trace) result.push_back(number);
      return result;
    }

    SimNetwork network;
    std::unique_ptr<SimPath> left, right;
    base::Instant now{};
    std::vector<std::pair<base::Instant, std::uint32_t>> trace;
  };
};

TEST_F(SimNetworkTest, DeliversInOrderAfterTheDelay) {
  World world(1, {.delay = 7us});
  ASSERT_EQ(world.send(0, 40, 1000), 1u);
  EXPECT_EQ(world.network.next_event(), base::Instant(7us));
  world.network.advance(base::Instant(6us));
  std::array<Arrival, 2> arrivals;
  EXPECT_EQ(world.right->collect(arrivals, world.now), 0u);
  world.run();
  ASSERT_EQ(world.trace.size(), 40u);
  for (std::uint32_t index = 0; index < 40; ++index) EXPECT_EQ(world.trace[index].second, index);
  EXPECT_EQ(world.now, base::Instant(7us));
}

TEST_F(SimNetworkTest, MergesAsTheKernelWould) {
  World world(1, {});
  auto first = pattern(2500, 1);
  auto second = pattern(900, 2);
  const std::array<iovec, 1> a{{{first.data(), first.size()}}}, b{{{second.data(), second.size()}}};
  const std::array<Train, 2> trains{{{world.right->address(), a, 1000}, {world.right->address(), b, 1000}}};
  ASSERT_EQ(world.left->send(trains, world.now), 2u);
  world.network.advance(world.network.next_event());
  std::array<Arrival, 4> arrivals;
  ASSERT_EQ(world.right->collect(arrivals, world.now), 2u);
  EXPECT_EQ(arrivals[0].datagram_size, 1000u);
  EXPECT_TRUE(std::equal(arrivals[0].bytes.begin(), arrivals[0].bytes.end(), first.begin(), first.end()));
  EXPECT_EQ(arrivals[1].datagram_size, 900u);
  EXPECT_TRUE(std::equal(arrivals[1].bytes.begin(), arrivals[1].bytes.end(), second.begin(), second.end()));
}

TEST_F(SimNetworkTest, SameSeedSameRunOtherSeedOtherRun) {
  const SimLink link{.loss = 0.1, .duplication = 0.1, .reordering = 0.3, .corruption = 0.1};
  const auto trace_of = [&](std::uint64_t seed) {
    World world(seed, link);
    for (std::uint32_t train = 0; train < 50; ++train) world.send(train * 40, 40, 100);
    world.run();
    return world.trace;
  };
  const auto trace = trace_of(42);
  EXPECT_EQ(trace, trace_of(42));
  EXPECT_NE(trace, trace_of(43));
}

TEST_F(SimNetworkTest, RatesAreNearWhatWasAsked) {
  World world(7, {.loss = 0.05, .duplication = 0.02, .reordering = 0.1, .corruption = 0.01});
  constexpr std::uint32_t kCount = 40'000;
  for (std::uint32_t first = 0; first < kCount; first += 40) world.send(first, 40, 100);
  world.run();
  const SimCounters& counters = world.network.counters();
  EXPECT_NEAR(static_cast<double>(counters.lost), kCount * 0.05, kCount * 0.01);
  EXPECT_NEAR(static_cast<double>(counters.duplicated), kCount * 0.02, kCount * 0.005);
  EXPECT_NEAR(static_cast<double>(counters.reordered), kCount * 0.1, kCount * 0.01);
  EXPECT_NEAR(static_cast<double>(counters.corrupted), kCount * 0.01, kCount * 0.003);
  EXPECT_EQ(counters.taken, kCount);
  EXPECT_EQ(counters.delivered, kCount - counters.lost + counters.duplicated);
  EXPECT_EQ(world.trace.size(), counters.delivered);
}

TEST_F(SimNetworkTest, ReorderingDelaysButKeepsAll) {
  World world(3, {.reordering = 0.5});
  for (std::uint32_t first = 0; first < 400; first += 40) world.send(first, 40, 100);
  world.run();
  auto numbers = world.numbers();
  EXPECT_FALSE(std::is_sorted(numbers.begin(), numbers.end()));
  std::sort(numbers.begin(), numbers.end());
  for (std::uint32_t index = 0; index < 400; ++index) EXPECT_EQ(numbers[index], index);
}

TEST_F(SimNetworkTest, CorruptionFlipsOneBit) {
  World world(3, {.corruption = 1}, {.merges_arrivals = false});
  auto sent = pattern(1000, 1);
  send_bytes(*world.left, world.right->address(), sent, 1000);
  world.network.advance(base::Instant(1s));
  std::array<Arrival, 1> arrivals;
  ASSERT_EQ(world.right->collect(arrivals, world.now), 1u);
  int bits = 0;
  for (std::size_t at = 0; at < sent.size(); ++at)
    bits += std::popcount(std::to_integer<unsigned>(sent[at] ^ arrivals[0].bytes[at]));
  EXPECT_EQ(bits, 1);
}

TEST_F(SimNetworkTest, ARateSpreadsDatagramsAndAFullQueueDrops) {
  World world(1, {.delay = 0ns, .bytes_per_second = 1'000'000'000, .queue_bytes_max = 10'000});
  world.send(0, 20, 1000);
  world.run();
  ASSERT_EQ(world.trace.size(), 10u);
  for (std::uint32_t index = 0; index < 10; ++index)
    EXPECT_EQ(world.trace[index], std::pair(base::Instant((index + 1) * 1us), index));
  EXPECT_EQ(world.network.counters().queue_overran, 10u);
}

TEST_F(SimNetworkTest, AFullQueueOfItsOwnMakesTheSenderWait) {
  World world(1, {.delay = 0ns, .bytes_per_second = 1'000'000'000, .queue_bytes_max = 10'000, .is_senders_own = true});
  EXPECT_EQ(world.send(0, 8, 1000), 1u);
  EXPECT_EQ(world.send(8, 8, 1000), 0u);
  EXPECT_EQ(world.left->counters().send_later, 1u);
  world.run();
  EXPECT_EQ(world.send(8, 8, 1000), 1u);
  world.run();
  EXPECT_EQ(world.trace.size(), 16u);
  EXPECT_EQ(world.network.counters().queue_overran, 0u);
}

TEST_F(SimNetworkTest, RefusesWhatTheLinkCannotCarry) {
  World world(1, {});
  world.network.set_link(world.left->address(), world.right->address(), {.datagram_size_max = 500});
  EXPECT_EQ(world.left->datagram_size_max(world.right->address()), 500u);
  EXPECT_EQ(world.right->datagram_size_max(world.left->address()), 1472u);
  EXPECT_EQ(world.send(0, 3, 501), 1u);
  EXPECT_EQ(world.left->counters().send_too_big, 1u);
  EXPECT_EQ(world.send(0, 3, 500), 1u);
  world.run();
  EXPECT_EQ(world.trace.size(), 3u);
}

TEST_F(SimNetworkTest, AFullReceiverDropsAndCounts) {
  World world(1, {}, {.receive_buffer_bytes = 2500});
  world.send(0, 4, 1000);
  world.run();
  EXPECT_EQ(world.trace.size(), 2u);
  EXPECT_EQ(world.network.counters().receiver_overran, 2u);
}

TEST_F(SimNetworkTest, AHostThatIsGoneIsUnreachableUntilItReturns) {
  World world(1, {});
  const auto address = world.right->address();
  EXPECT_EQ(world.network.attach(address).error().status, Status::in_use);
  world.right.reset();
  auto bytes = pattern(10, 1);
  EXPECT_TRUE(send_bytes(*world.left, address, bytes, 100));
  world.network.advance(base::Instant(1s));
  std::array<Unreachable, 2> errors;
  ASSERT_EQ(world.left->unreachable(errors), 1u);
  EXPECT_EQ(errors[0].to, address);
  EXPECT_EQ(world.network.counters().nobody_there, 1u);

  world.right = *world.network.attach(address);
  world.send(0, 1, 100);
  world.run();
  EXPECT_EQ(world.trace.size(), 1u);
}

TEST_F(SimNetworkTest, APartitionIsALossOfOne) {
  World world(1, {.loss = 1});
  world.send(0, 60, 100);
  EXPECT_EQ(world.network.next_event(), base::kNever);
  EXPECT_EQ(world.network.counters().lost, 60u);
}

}  // namespace
}  // namespace fairlead::path
