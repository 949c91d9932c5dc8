// Rare faults of the network: losses in a row, every n-th datagram, black holes, late duplicates, shared downlinks.

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "path/sim_network.hpp"

namespace fairlead::path {
namespace {

using namespace std::chrono_literals;

class SimNetworkFaultsTest : public testing::Test {
 protected:
  static base::SocketAddress host(const char* ip) { return *base::SocketAddress::from_ip(ip, 20480); }

  void send(SimPath& from, std::uint32_t size) {
    std::vector<std::byte> bytes(size);
    const iovec piece{bytes.data(), bytes.size()};
    const Train train{receiver_->address(), std::span(&piece, 1), size};
    ASSERT_EQ(from.send(std::span(&train, 1), now_), 1u);
  }

  /// Returns the times of all arrivals, until nothing is in flight.
  std::vector<base::Instant> run() {
    std::vector<base::Instant> times;
    while (network_.next_event() != base::kNever) {
      now_ = std::max(now_, network_.next_event());
      network_.advance(now_);
      std::array<Arrival, 64> arrivals;
      for (std::size_t count = receiver_->collect(arrivals, now_); count > 0; --count) times.push_back(now_);
    }
    return times;
  }

  base::Instant now_{1s};
  SimNetwork network_{7};
  std::unique_ptr<SimPath> sender_ = *network_.attach(host("10.0.0.1"));
  std::unique_ptr<SimPath> other_ = *network_.attach(host("10.0.0.2"));
  std::unique_ptr<SimPath> receiver_ = *network_.attach(host("10.0.0.3"), {.merges_arrivals = false});
};

TEST_F(SimNetworkFaultsTest, ABurstTakesItsLengthInARowAndKeepsTheShare) {
  network_.set_default_link({.loss = 0.1, .loss_burst = 10});
  constexpr int kDatagrams = 20'000;
  int burst = 0, bursts = 0;
  for (int i = 0; i < kDatagrams; ++i) {
    const std::uint64_t lost = network_.counters().lost;
    send(*sender_, 100);
    if (network_.counters().lost > lost) {
      ++burst;
    } else if (burst > 0) {
      EXPECT_EQ(burst % 10, 0);
      bursts += 1;
      burst = 0;
    }
  }
  EXPECT_GT(bursts, 100);
  EXPECT_NEAR(static_cast<double>(network_.counters().lost), kDatagrams * 0.1, kDatagrams * 0.03);
}

TEST_F(SimNetworkFaultsTest, ABurstEndsWithItsTime) {
  network_.set_default_link({.loss = 0.99, .loss_burst = 1000, .loss_burst_time = 1ms});
  int lost_in_a_row = 0;
  while (network_.counters().lost == 0) send(*sender_, 100);
  for (now_ += 2ms; lost_in_a_row < 100; ++lost_in_a_row) {
    const std::uint64_t lost = network_.counters().lost;
    send(*sender_, 100);
    if (network_.counters().lost == lost) break;
  }
  EXPECT_LT(lost_in_a_row, 100);
}

TEST_F(SimNetworkFaultsTest, EachNthIsLost) {
  network_.set_default_link({.loss_every = 4});
  for (int i = 0; i < 100; ++i) send(*sender_, 100);
  EXPECT_EQ(network_.counters().lost, 25u);
}

TEST_F(SimNetworkFaultsTest, ABlackHoleTakesWhatIsTooLongAndTellsNobody) {
  network_.set_default_link({.datagram_size_max = 9000, .black_hole_above = 1500});
  send(*sender_, 1500);
  send(*sender_, 1501);
  EXPECT_EQ(run().size(), 1u);
  EXPECT_EQ(network_.counters().too_big_on_the_way, 1u);
  EXPECT_EQ(sender_->counters().send_too_big, 0u);
  EXPECT_EQ(sender_->datagram_size_max(receiver_->address()), 9000u);
}

TEST_F(SimNetworkFaultsTest, DuplicatesCanBeSecondsLate) {
  network_.set_default_link({.duplication = 1, .duplicate_delay = 8s});
  for (int i = 0; i < 50; ++i) send(*sender_, 100);
  const auto times = run();
  ASSERT_EQ(times.size(), 100u);
  EXPECT_GT(times.back() - times.front(), 5s);
  EXPECT_LE(times.back() - times.front(), 8s);
}

TEST_F(SimNetworkFaultsTest, ADownlinkIsSharedByItsSenders) {
  network_.set_default_link({.delay = 10us});
  network_.set_downlink(receiver_->address(), {.bytes_per_second = 1'000'000, .queue_bytes_max = 5000});
  for (int i = 0; i < 5; ++i) {
    send(*sender_, 1000);
    send(*other_, 1000);
  }
  const auto times = run();
  // Five fit into the queue, the others are tail-dropped.
  ASSERT_EQ(times.size(), 5u);
  EXPECT_EQ(network_.counters().queue_overran, 5u);
  for (std::size_t i = 1; i < times.size(); ++i) EXPECT_EQ(times[i] - times[i - 1], 1ms);
}

}  // namespace
}  // namespace fairlead::path
