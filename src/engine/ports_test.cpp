#include "engine/ports.hpp"

#include <gtest/gtest.h>

#include <array>

namespace fairlead::engine {
namespace {

class PortsTest : public testing::Test {
 protected:
  PortHandle open(std::uint32_t number, std::uint32_t events) {
    const PortHandle port = *ports_.open(number);
    EXPECT_EQ(ports_.find(port)->events->reserve(events), Status::ok);
    return port;
  }
  void produce(PortHandle port, std::uint64_t cookie) { ports_.produce(port.slot, {.cookie = cookie}); }

  Ports ports_{*base::SocketAddress::from_ip("127.0.0.1", 1)};
};

TEST_F(PortsTest, ANumberIsOpenOnce) {
  const PortHandle port = open(7, 1);
  EXPECT_EQ(ports_.open(7).error().status, Status::in_use);
  EXPECT_EQ(ports_.find_number(7), port.slot);
  ports_.free(port);
  EXPECT_EQ(ports_.find(port), nullptr);
  EXPECT_EQ(ports_.find_number(7), Ports::kNone);
  EXPECT_NE(*ports_.open(7), port);
}

TEST_F(PortsTest, TheHighestFreeNumberIsTakenFirst) {
  std::uint32_t number = 0;
  ASSERT_TRUE(ports_.open_dynamic(10, 2, number));
  EXPECT_EQ(number, 11u);
  ASSERT_TRUE(ports_.open_dynamic(10, 2, number));
  EXPECT_EQ(number, 10u);
  EXPECT_EQ(ports_.open_dynamic(10, 2, number).error().status, Status::not_available);
}

TEST_F(PortsTest, LooksAtNoNumbersBeyondTheLargest) {
  std::uint32_t number = 0;
  ASSERT_TRUE(ports_.open_dynamic(0, ~0U, number));
  EXPECT_EQ(number, PortTable::kNumberMax);
  ASSERT_TRUE(ports_.open_dynamic(PortTable::kNumberMax - 1, ~0U, number));
  EXPECT_EQ(number, PortTable::kNumberMax - 1);
  EXPECT_EQ(ports_.open_dynamic(PortTable::kNumberMax, ~0U, number).error().status, Status::not_available);
  EXPECT_EQ(ports_.open_dynamic(PortTable::kNumberMax + 1, ~0U, number).error().status, Status::not_available);
  EXPECT_EQ(ports_.open_dynamic(~0U, ~0U, number).error().status, Status::not_available);
}

TEST_F(PortsTest, APollerGetsWhatWaitedFirstAndThenWhatHappens) {
  const PortHandle port = open(1, 4);
  produce(port, 1);
  std::array<Completion, 3> events;
  ports_.begin_poll(*ports_.find(port), events);
  produce(port, 2);
  EXPECT_TRUE(ports_.has_room());
  produce(port, 3);
  EXPECT_FALSE(ports_.has_room());
  produce(port, 4);
  ASSERT_EQ(ports_.end_poll(*ports_.find(port), events), 3u);
  for (std::size_t i = 0; i < events.size(); ++i) EXPECT_EQ(events[i].cookie, i + 1);
  EXPECT_TRUE(ports_.has_room());
  EXPECT_EQ(ports_.find(port)->events->consume()->cookie, 4u);
}

TEST_F(PortsTest, APollerWhoseTableIsFullOfWhatWaitedHoldsNobodyUp) {
  const PortHandle port = open(1, 2);
  produce(port, 1);
  std::array<Completion, 1> events;
  ports_.begin_poll(*ports_.find(port), events);
  EXPECT_TRUE(ports_.has_room());
  produce(port, 2);
  EXPECT_EQ(ports_.end_poll(*ports_.find(port), events), 1u);
  EXPECT_EQ(ports_.find(port)->events->consume()->cookie, 2u);
}

}  // namespace
}  // namespace fairlead::engine
