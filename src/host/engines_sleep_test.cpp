// The engines here have no threads of their own: the sleeper alone learns that they have work.

#include "host/engines_sleep.hpp"

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <chrono>
#include <memory>
#include <utility>

#include "base/event_descriptor.hpp"
#include "path/udp_path.hpp"

namespace fairlead::host {
namespace {

using namespace std::chrono_literals;
using engine::PortHandle;

constexpr std::uint32_t kNumber = 1;

std::shared_ptr<embedded::EmbeddedCore> core_without_thread(std::uint64_t epoch) {
  auto path = path::UdpPath::open({.local = base::SocketAddress::from_ip("127.0.0.1", 0).value()}).value();
  const base::SocketAddress address = path->address();
  auto engine = std::make_unique<engine::Engine>(std::move(path), address, engine::EngineOptions(), epoch, epoch,
                                                 nullptr, std::nullopt);
  return std::make_shared<embedded::EmbeddedCore>(
      std::move(engine), base::open_event_descriptor("the test", EFD_NONBLOCK).value(), base::LogFile(), std::nullopt);
}

class EnginesSleepTest : public ::testing::Test {
 protected:
  EnginesSleepTest() { engines_.restore(near_, false).value(); }

  void send(embedded::EmbeddedCore& from, PortHandle port, const embedded::EmbeddedCore& to) {
    const iovec source{&sent_, sizeof sent_};
    ASSERT_EQ(from.reserve_events(port, 1), Status::ok);
    ASSERT_EQ(from.send(port, {.to = {to.address(), kNumber}, .part = {{&source, 1}, sizeof sent_, 1}}, operation_),
              Status::ok);
  }

  const engine::EngineOptions options_;
  const std::shared_ptr<embedded::EmbeddedCore> near_ = core_without_thread(1), far_ = core_without_thread(2);
  const PortHandle near_port_ = near_->open_port(kNumber).value(), far_port_ = far_->open_port(kNumber).value();
  ServedEngines engines_{std::make_shared<Routes>(1), 0, options_, {.engines_max = 4, .applications_max = 4}};
  const base::FileDescriptor calls_ = base::open_event_descriptor("the test", EFD_NONBLOCK).value();
  EnginesSleep sleep_;
  std::uint64_t sent_ = 4711, got_ = 0;
  engine::OperationHandle operation_;
};

TEST_F(EnginesSleepTest, EndsForWhatTheNetworkBrings) {
  const iovec target{&got_, sizeof got_};
  ASSERT_EQ(near_->reserve_events(near_port_, 1), Status::ok);
  ASSERT_EQ(near_->post_receive(near_port_, {.memory = {&target, 1}, .size_min = 8, .cookie = 1}, operation_),
            Status::ok);
  send(*far_, far_port_, *near_);
  for (int turn = 0; turn < 1000 && !near_->has_event(near_port_); ++turn) {
    far_->progress();
    if (sleep_.sleep(engines_, calls_.get(), base::MonotonicClock::now() + 1min)) near_->progress();
  }
  EXPECT_TRUE(near_->has_event(near_port_));
  EXPECT_EQ(got_, sent_);
}

TEST_F(EnginesSleepTest, EndsForTheEnginesTimers) {
  send(*near_, near_port_, *far_);  // which does not answer
  for (int turn = 0; turn < 20; ++turn) {
    EXPECT_TRUE(sleep_.sleep(engines_, calls_.get(), base::kNever));
    near_->progress();
  }
  near_->cancel(near_port_, operation_);
}

TEST_F(EnginesSleepTest, EndsForACall) {
  ::eventfd_write(calls_.get(), 1);
  EXPECT_FALSE(sleep_.sleep(engines_, calls_.get(), base::kNever)) << "no engine has work";
}

// Otherwise the second sleep would leave the network to nobody.
TEST_F(EnginesSleepTest, LeavesTheEngineToOthersAfterwards) {
  ::eventfd_write(calls_.get(), 1);
  for (int turn = 0; turn < 2; ++turn) {
    sleep_.sleep(engines_, calls_.get(), base::kNever);
    base::Instant deadline = base::kNever;
    ASSERT_TRUE(near_->driver().lie_down(deadline));
    EXPECT_FALSE(near_->driver().lie_down(deadline)) << "one sleeper at a time";
    near_->driver().get_up();
  }
}

}  // namespace
}  // namespace fairlead::host
