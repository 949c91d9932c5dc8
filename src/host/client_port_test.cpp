// A thread sleeps at the port while another one takes its events.

#include "host/client_port.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "host/one_segment.hpp"
#include "queue/producer.hpp"

namespace fairlead::host {
namespace {

class ClientPortTest : public testing::Test {
 protected:
  ClientPortTest() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends.data()), 0);
    daemon_ = base::FileDescriptor(ends[1]);
    port_ = std::make_unique<ClientPort>(shm::Socket(base::FileDescriptor(ends[0]), users_),
                                         ClientPort::make_events(*memory_, 0).value(), *memory_, room_, 0, 1);
    producer_ = std::make_unique<queue::Producer>(queue::Producer::attach(segment_).value());
  }
  void produce(std::uint64_t operation) {
    std::byte* const element = producer_->pnext();
    ASSERT_NE(element, nullptr);
    const Event event{.operation = operation};
    std::memcpy(element, &event, sizeof event);
    producer_->put();
  }
  bool daemon_has_nudge() const {
    std::array<char, 8> nudge;
    return ::recv(daemon_.get(), nudge.data(), nudge.size(), MSG_DONTWAIT) > 0;
  }

  shm::Users users_;
  std::shared_ptr<ClientMemory> memory_ = ClientMemory::create().value();
  EventRoom room_{kEventsOfAllMax};
  OneSegment segment_{memory_->events(0)};
  base::FileDescriptor daemon_;
  std::unique_ptr<ClientPort> port_;
  std::unique_ptr<queue::Producer> producer_;
};

// The event has left the queue and is not yet among those for next().
TEST_F(ClientPortTest, AnEventTakenWhileAThreadFallsAsleepWakesIt) {
  produce(7);
  port_->drain([&](const Event& event, engine::Completion& completion) {
    EXPECT_FALSE(port_->has_event());
    EXPECT_TRUE(port_->arm([&] { return port_->has_event(); }));
    completion.cookie = event.operation;
    return true;
  });
  EXPECT_TRUE(daemon_has_nudge());  // which comes back, and wakes the thread
  EXPECT_TRUE(port_->has_event());
  std::array<engine::Completion, 2> taken;
  const auto take = [](const Event&, engine::Completion&) { return true; };
  ASSERT_EQ(port_->next(taken, take), 1U);
  EXPECT_EQ(taken[0].cookie, 7U);
}

TEST_F(ClientPortTest, ADrainThatFindsNothingWakesNobody) {
  EXPECT_TRUE(port_->arm([&] { return port_->has_event(); }));
  port_->drain([](const Event&, engine::Completion&) { return true; });
  EXPECT_FALSE(daemon_has_nudge());
}

}  // namespace
}  // namespace fairlead::host
