// Exposures of applications at the host engine, under keys that they got in advance.

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <unordered_set>

#include "host/host_core.hpp"
#include "host/host_for_tests.hpp"
#include "host/stoppable_host_for_tests.hpp"

namespace fairlead::host {
namespace {

using engine::PortHandle;

class HostExposures : public ::testing::Test {
 protected:
  template <typename Host>
  static std::shared_ptr<HostCore> attach(const Host& host) {
    return HostCore::attach(host.file(), base::SocketAddress::from_ip("127.0.0.1", 0).value(), {}).value();
  }
  std::uint64_t expose(HostCore& core, PortHandle port) {
    engine::OperationHandle operation;
    std::uint64_t key = 0;
    EXPECT_EQ(core.expose(port, {.memory = memory_, .length = bytes_.size(), .is_writable = true}, operation, key),
              Status::ok);
    return key;
  }
  static engine::Completion next(HostCore& core, PortHandle port) {
    engine::Completion completion;
    while (!core.next_event(port, completion)) core.wait(port, base::kNever);
    core.release_events(port, 1);
    return completion;
  }

  HostForTests host_;
  std::array<std::byte, 100> bytes_{};
  std::array<iovec, 1> memory_{iovec{bytes_.data(), bytes_.size()}};
};

// The descriptor travels faster than the request, and another host engine reads it.
TEST_F(HostExposures, AKeyMayBeUsedByAnybodyAtOnce) {
  HostForTests other_host;
  const auto owner = attach(host_), initiator = attach(other_host);
  const PortHandle exposed = owner->open_port(7).value(), active = initiator->open_port(8).value();
  std::array<std::byte, 100> source{};
  const iovec from{source.data(), source.size()};
  constexpr int kRounds = 500;
  for (int round = 0; round < kRounds; ++round) {
    source.fill(static_cast<std::byte>(round));
    ASSERT_EQ(owner->reserve_events(exposed, 1), Status::ok);
    ASSERT_EQ(initiator->reserve_events(active, 1), Status::ok);
    const std::uint64_t key = expose(*owner, exposed);
    engine::OperationHandle operation;
    ASSERT_EQ(initiator->put(active,
                             {.target = {owner->address(), 7},
                              .target_epoch = owner->epoch(),
                              .key = key,
                              .memory = {&from, 1},
                              .length = source.size()},
                             operation),
              Status::ok);
    ASSERT_EQ(next(*initiator, active).status, Status::ok) << round;
    ASSERT_EQ(next(*owner, exposed).status, Status::ok) << round;
    ASSERT_EQ(bytes_, source);
  }
  owner->close_port(exposed);
  initiator->close_port(active);
}

TEST_F(HostExposures, NoKeyIsGivenTwice) {
  const auto core = attach(host_);
  const PortHandle port = core->open_port(7).value();
  constexpr std::uint32_t kMany = 3 * kRequestsMax;
  ASSERT_EQ(core->reserve_events(port, kMany), Status::ok);
  std::unordered_set<std::uint64_t> keys;
  for (std::uint32_t i = 0; i < kMany; ++i) EXPECT_TRUE(keys.insert(expose(*core, port)).second);
  core->close_port(port);
}

// While the host engine is stopped ---------------------------------------------------------------------------------

class StoppedHostExposures : public HostExposures {
 protected:
  /// Returns when the host engine has read all requests: a receive is not posted before that.
  void wait_until_all_are_read(HostCore& core, PortHandle port) {
    engine::OperationHandle receive;
    ASSERT_EQ(core.post_receive(port, {.memory = memory_}, receive), Status::ok);
  }
  /// Sends to nobody until the ring of requests, which is empty, has room for `left` more. The port has room for their
  /// events.
  void fill_ring(HostCore& core, PortHandle port, std::uint32_t left) {
    for (std::uint32_t i = left; i < kRequestsMax; ++i) {
      engine::OperationHandle sent;
      ASSERT_EQ(core.send(port, {.to = {core.address(), 9}, .part = {memory_, bytes_.size(), 0}}, sent), Status::ok);
    }
  }

  StoppableHost stoppable_;
};

TEST_F(StoppedHostExposures, AnExposureWaitsForRoomInTheRing) {
  const auto core = attach(stoppable_);
  const PortHandle port = core->open_port(7).value();
  ASSERT_EQ(core->reserve_events(port, kRequestsMax + 3), Status::ok);
  expose(*core, port);  // the port has keys now
  wait_until_all_are_read(*core, port);
  stoppable_.stop();
  fill_ring(*core, port, 0);
  std::thread exposing([&] { expose(*core, port); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  stoppable_.go_on();
  exposing.join();
  core->close_port(port);
}

// The host engine finds a full ring and the call that closes the port. It reads a few requests in a turn, because
// another application is busy, and looks for calls often, because a third one is parked.
TEST_F(StoppedHostExposures, APortThatIsClosedLeavesNoneToTheNext) {
  const auto core = attach(stoppable_), other = attach(stoppable_), parked = attach(stoppable_);
  const PortHandle busy = other->open_port(8).value();
  constexpr int kRounds = 20;
  ASSERT_EQ(other->reserve_events(busy, kRounds * (kRequestsMax + 1)), Status::ok);
  for (int round = 0; round < kRounds; ++round) {
    const PortHandle port = core->open_port(7).value();
    ASSERT_EQ(core->reserve_events(port, kRequestsMax + 3), Status::ok);
    expose(*core, port);
    wait_until_all_are_read(*core, port);
    wait_until_all_are_read(*other, busy);
    stoppable_.stop();
    fill_ring(*other, busy, 0);
    fill_ring(*core, port, 1);
    expose(*core, port);
    stoppable_.go_on();
    core->close_port(port);
    const auto next = core->open_port(7);
    ASSERT_TRUE(next.has_value()) << round << ": " << next.error().message;
    ASSERT_EQ(core->reserve_events(*next, 1), Status::ok);
    ASSERT_NE(expose(*core, *next), 0u) << round;
    core->close_port(*next);
  }
  other->close_port(busy);
}

}  // namespace
}  // namespace fairlead::host
