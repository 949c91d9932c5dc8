// Messages that no buffer can take, over each path: who gets a report, and pools that prevent drops.

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <latch>
#include <thread>

#include "tests/net_message.hpp"

namespace fairlead::tests {
namespace {

using net::Buffer;
using net::MessageReceive;
using net::MessageSend;
using net::StopMode;

/// Sums the numbers of dropped messages in a machine's events.
class DropCount {
 public:
  net::MachineCallback callback() {
    return [this](const net::MachineEvent& event) {
      if (event.kind != net::MachineEvent::Kind::error) return;
      EXPECT_EQ(event.status, Status::no_buffer);
      std::uint64_t more = 0;
      std::from_chars(event.text.data(), event.text.data() + event.text.size(), more);
      EXPECT_GT(more, 0U) << event.text;
      ++events_;
      messages_ += more;
    };
  }
  std::uint64_t events() const { return events_; }
  std::uint64_t messages() const { return messages_; }

 private:
  std::atomic<std::uint64_t> events_ = 0, messages_ = 0;
};

// The dropped messages are reported although the machine has no buffer and no deadline.
TEST_P(NetMessage, WhatIsDroppedIsTold) {
  DropCount drops;
  net::TransferMachine lazy(*domain_, drops.callback());
  const auto own = lazy.start_and_wait(far_at("35:*"));
  ASSERT_TRUE(own) << own.error().message;
  const auto to_lazy = near().create_end_point(own->address()).value();
  const auto one = buffer(8, near_record_);
  constexpr std::uint64_t kMessages = 100;
  for (std::uint64_t rounds = 1; rounds <= 3; ++rounds) {
    for (std::uint64_t i = 0; i < kMessages; ++i) {
      ASSERT_EQ(near().add(*one, MessageSend{.to = to_lazy}), Status::ok);
      near_record_.wait_for(++sent_);
    }
    const auto end = Instant::clock::now() + kPatience;
    while (drops.messages() < rounds * kMessages && Instant::clock::now() < end) std::this_thread::yield();
    ASSERT_EQ(drops.messages(), rounds * kMessages);
  }
  EXPECT_EQ(lazy.messages_dropped(), 3 * kMessages);
  EXPECT_LE(drops.events(), 3 * kMessages);
}

TEST_P(NetMessage, WhatIsDroppedIsToldBesideSynchronousDelivery) {
  DropCount drops;
  net::TransferMachine lazy(*domain_, drops.callback());
  ASSERT_TRUE(lazy.deliver_synchronously());
  const auto own = lazy.start_and_wait(far_at("35:*"));
  ASSERT_TRUE(own) << own.error().message;
  const auto to_lazy = near().create_end_point(own->address()).value();
  const auto one = buffer(8, near_record_);
  std::uint64_t dropped = 0;
  const auto drop_one = [&] {
    ASSERT_EQ(near().add(*one, MessageSend{.to = to_lazy}), Status::ok);
    near_record_.wait_for(++sent_);
    ++dropped;
  };
  drop_one();
  const auto end = Instant::clock::now() + kPatience;
  while (drops.messages() < dropped && Instant::clock::now() < end) EXPECT_EQ(lazy.deliver_all(), 0U);
  EXPECT_EQ(drops.messages(), dropped);
  drop_one();
  while (drops.messages() < dropped && Instant::clock::now() < end) EXPECT_FALSE(lazy.pending());
  EXPECT_EQ(drops.messages(), dropped);
  // The report interrupts wait(), which then continues.
  std::jthread waiter([&] { EXPECT_FALSE(lazy.wait(kNever).value_or(false)); });
  for (int i = 0; i < 3; ++i) {
    drop_one();
    while (drops.messages() < dropped && Instant::clock::now() < end) std::this_thread::yield();
    EXPECT_EQ(drops.messages(), dropped);
  }
  ASSERT_TRUE(lazy.stop(StopMode::abort));
}

TEST_P(NetMessage, SendsSucceedThoughNobodyTakesThem) {
  send(100, 1);  // no buffer
  while (far().messages_dropped() != 1) std::this_thread::yield();
  const auto small = buffer(50, far_record_);
  ASSERT_EQ(far().add(*small, MessageReceive{}), Status::ok);
  send(100, 2);  // no buffer that is large enough
  while (far().messages_dropped() != 2) std::this_thread::yield();
  EXPECT_TRUE(small->is_queued());
  send(50, 3);
  EXPECT_EQ(far_record_.wait_for(1).at(0).length, 50U);
}

TEST_P(NetMessage, ALargeMessagePassesSmallBuffersBy) {
  const auto small = buffer(50, far_record_), large = buffer(200, far_record_);
  ASSERT_EQ(far().add(*small, MessageReceive{}), Status::ok);
  ASSERT_EQ(far().add(*large, MessageReceive{}), Status::ok);
  send(100, 1);
  far_record_.wait_for(1);
  EXPECT_FALSE(large->is_queued());
  EXPECT_TRUE(small->is_queued());
  EXPECT_TRUE(holds(*large, 0, 100, 1));
}

TEST_P(NetMessage, ALongMessageThatNoBufferCanTakeEndsAtItsBeginning) {
  constexpr std::uint64_t kLong = 64 << 20;
  const auto small = buffer(50, far_record_);
  ASSERT_EQ(far().add(*small, MessageReceive{}), Status::ok);
  const auto one = buffer(kLong, near_record_);
  const auto bytes_sent = [&] {
    std::uint64_t sum = 0;
    for (const net::Counter& counter : near().engine_counters())
      if (counter.name == "path.bytes_sent" || counter.name == "shm.bytes_delivered") sum += counter.value;
    return sum;
  };
  const std::uint64_t before = bytes_sent();
  ASSERT_EQ(near().add(*one, MessageSend{.to = to_far()}), Status::ok);
  EXPECT_EQ(near_record_.wait_for(1).at(0).status, Status::no_buffer);
  EXPECT_LT(bytes_sent() - before, kLong / 2);
  // A host engine reports dropped messages to each process.
  while (far().messages_dropped() == 0) std::this_thread::yield();
  EXPECT_EQ(far().messages_dropped(), 1U);
  EXPECT_TRUE(small->is_queued());
}

TEST_P(NetMessage, AConfirmedSendSaysWhetherABufferTookIt) {
  std::size_t sent = 0, received = 0;
  for (const std::uint64_t size : {1UL, 100UL, 5000UL, 200'000UL}) {
    const auto one = buffer(size, near_record_), inbox = buffer(size, far_record_);
    const auto ask = [&] {
      EXPECT_EQ(near().add(*one, MessageSend{.to = to_far(), .is_confirmed = true}), Status::ok);
      return near_record_.wait_for(++sent).back().status;
    };
    EXPECT_EQ(ask(), Status::no_buffer) << size;
    ASSERT_EQ(far().add(*inbox, MessageReceive{}), Status::ok);
    EXPECT_EQ(ask(), Status::ok) << size;
    EXPECT_EQ(far_record_.wait_for(++received).back().length, size);
  }
  Buffer* none = nullptr;
  EXPECT_EQ(near().add(std::span(&none, 0), MessageSend{.to = to_far(), .is_confirmed = true}).count, 0U);
}

// Pools --------------------------------------------------------------------------------------------------------------

class NetPool : public NetMessage {};

// The application blocks in the callback of the first message until all messages have been sent.
TEST_P(NetPool, ALateApplicationCostsNoMessage) {
  constexpr std::uint32_t kMessages = 20'000, kInEach = 64, kLength = 32, kWindow = 32;
  auto pool = net::BufferPool::create(*domain_, {.buffer_size = kInEach * kLength}).value();
  ASSERT_TRUE(pool.provision(kMessages / kInEach + 3));
  std::vector<int> seen(kMessages);
  std::latch all_sent(kWindow);
  std::atomic<std::uint32_t> arrived = 0;
  net::TransferMachine late(*domain_);
  const auto take = [&](const net::BufferEvent& event) {
    if (event.status != Status::ok) return;
    all_sent.wait();
    std::uint32_t which = 0;
    event.buffer.read(event.offset, std::as_writable_bytes(std::span(&which, 1)));
    ++seen.at(which);
    if (event.is_final) {
      EXPECT_EQ(pool.put(event.buffer), Status::ok);
    }
    ++arrived;
  };
  ASSERT_TRUE(late.attach(pool, {.on_event = take, .size_min = kLength, .messages_max = kInEach}));
  const auto own = late.start_and_wait(far_at("35:*"));
  ASSERT_TRUE(own) << own.error().message;
  const net::EndPoint to = near().create_end_point(own->address()).value();
  std::atomic<std::uint32_t> next = 0;
  std::vector<std::unique_ptr<Buffer>> outboxes;
  const auto send_next = [&](Buffer& buffer) {
    const std::uint32_t which = next++;
    if (which >= kMessages) return all_sent.count_down();
    buffer.write(0, std::as_bytes(std::span(&which, 1)));
    ASSERT_EQ(near().add(buffer, MessageSend{.to = to}), Status::ok);
  };
  for (std::uint32_t i = 0; i < kWindow; ++i) {
    outboxes.push_back(Buffer::allocate(*domain_, kLength).value());
    outboxes.back()->set_callback([&](const net::BufferEvent& event) {
      ASSERT_EQ(event.status, Status::ok);
      send_next(event.buffer);
    });
  }
  for (const auto& outbox : outboxes) send_next(*outbox);
  const auto end = Instant::clock::now() + kPatience;
  while (arrived < kMessages && late.messages_dropped() == 0 && Instant::clock::now() < end) std::this_thread::yield();
  EXPECT_EQ(late.messages_dropped(), 0U);
  EXPECT_EQ(std::ranges::count(seen, 1), kMessages);
  ASSERT_TRUE(late.stop_and_wait(StopMode::abort));
  EXPECT_EQ(pool.free_count(), pool.size());
}

// Two machines, on two engines if the path has two, take buffers from one pool and return them.
TEST_P(NetPool, MachinesShareAPoolAndStopHandsAllBack) {
  constexpr std::size_t kMessages = 300;
  auto pool = net::BufferPool::create(*domain_, {.buffer_size = 64, .colours = 2}).value();
  ASSERT_TRUE(pool.provision(2 * kMessages));
  std::latch arrived(2 * kMessages);
  net::TransferMachine red(*domain_), blue(*domain_);
  for (std::uint32_t colour = 0; colour < 2; ++colour) {
    net::TransferMachine& machine = colour == 0 ? red : blue;
    ASSERT_TRUE(machine.attach(pool, {.on_event =
                                          [&, colour](const net::BufferEvent& event) {
                                            if (event.status != Status::ok) return;
                                            EXPECT_TRUE(holds(event.buffer, 0, 50, colour));
                                            EXPECT_EQ(pool.put(event.buffer, colour), Status::ok);
                                            arrived.count_down();
                                          },
                                      .length = 10,
                                      .colour = colour}));
  }
  ASSERT_TRUE(red.start_and_wait(far_at("35:1")));
  ASSERT_TRUE(blue.start_and_wait(near_at("35:2")));
  const std::array<net::EndPoint, 2> to{near().create_end_point(red.end_point().address()).value(),
                                        near().create_end_point(blue.end_point().address()).value()};
  std::array<std::unique_ptr<Buffer>, 2> outboxes{buffer(50, near_record_), buffer(50, near_record_)};
  for (std::size_t i = 0; i < 2; ++i) fill(*outboxes.at(i), 50, i);
  for (std::size_t i = 0; i < kMessages; ++i) {
    for (std::size_t which = 0; which < 2; ++which)
      ASSERT_EQ(near().add(*outboxes.at(which), MessageSend{.to = to.at(which)}), Status::ok);
    near_record_.wait_for(2 * (i + 1));
  }
  arrived.wait();
  EXPECT_EQ(red.messages_dropped() + blue.messages_dropped(), 0U);
  ASSERT_TRUE(red.stop_and_wait(StopMode::drain));
  ASSERT_TRUE(blue.stop_and_wait(StopMode::drain));
  EXPECT_EQ(pool.free_count(), pool.size());
  expect_settled(red);
}

INSTANTIATE_TEST_SUITE_P(Paths, NetPool, ::testing::ValuesIn(net_paths_where([](const NetPath& path) {
                           return path.is_hosted || path.name == "lo" || path.name == "shm" || path.name == "ipv4";
                         })),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace fairlead::tests
