// Messages over each path, as Motr's tests `msg` of its network transports require.

#include <algorithm>
#include <array>
#include <atomic>
#include <latch>
#include <thread>

#include "tests/net_message.hpp"

namespace fairlead::tests {
namespace {

using net::Buffer;
using net::MessageReceive;
using net::MessageSend;
using net::QueueKind;
using net::StopMode;

TEST_P(NetMessage, CarriesItsBytesAndItsSender) {
  for (const std::uint64_t length : {1ULL, 8ULL, 767ULL, 768ULL, 769ULL, 1472ULL, 65000ULL, 65001ULL, 3ULL << 20}) {
    net::Record far_record;
    const auto inbox = buffer(length + 3, far_record);
    ASSERT_EQ(far().add(*inbox, MessageReceive{.size_min = length}), Status::ok);
    send(length, length);
    const auto entry = far_record.wait_for(1).at(0);
    EXPECT_EQ(entry.status, Status::ok);
    EXPECT_EQ(entry.length, length);
    EXPECT_EQ(entry.offset, 0U);
    EXPECT_TRUE(entry.is_final);
    EXPECT_EQ(entry.sender, near_address_);
    EXPECT_TRUE(holds(*inbox, 0, length, length));
  }
  EXPECT_EQ(near().statistics().of(QueueKind::message_send).bytes_total,
            far().statistics().of(QueueKind::message_receive).bytes_total);
}

TEST_P(NetMessage, GathersAndScatters) {
  std::vector<std::byte> memory(100000);
  std::vector<std::span<std::byte>> odd, even;
  for (std::size_t at = 0, size = 1; at + 2 * size < memory.size(); at += 2 * size, size = size % 700 + 1) {
    odd.push_back(std::span(memory).subspan(at, size));
    even.push_back(std::span(memory).subspan(at + size, size));
    if (odd.size() == domain_->segments_max()) break;
  }
  const auto outbox = Buffer::borrow(*domain_, odd).value();
  const auto inbox = Buffer::borrow(*domain_, even).value();
  outbox->set_callback(near_record_.callback());
  inbox->set_callback(far_record_.callback());
  fill(*outbox, outbox->size(), 1);
  ASSERT_EQ(far().add(*inbox, MessageReceive{}), Status::ok);
  ASSERT_EQ(near().add(*outbox, MessageSend{.to = to_far()}), Status::ok);
  near_record_.wait_for(1);
  EXPECT_EQ(far_record_.wait_for(1).at(0).length, outbox->size());
  EXPECT_TRUE(holds(*inbox, 0, inbox->size(), 1));
}

TEST_P(NetMessage, CancelEndsAReceive) {
  const auto inbox = buffer(100, far_record_);
  ASSERT_EQ(far().add(*inbox, MessageReceive{}), Status::ok);
  EXPECT_TRUE(far().cancel(*inbox));
  const auto entry = far_record_.wait_for(1).at(0);
  EXPECT_EQ(entry.status, Status::canceled);
  EXPECT_TRUE(entry.is_final);
  EXPECT_FALSE(far().cancel(*inbox));
  EXPECT_EQ(far().statistics().of(QueueKind::message_receive).deletes, 1U);
}

TEST_P(NetMessage, FillsBuffersUntilTheirCountOrSpaceIsUsedUp) {
  for (const std::size_t buffers : {1U, 2U}) {
    for (const bool by_count : {true, false}) {
      SCOPED_TRACE(fmt::format("{} buffers, {}", buffers, by_count ? "by count" : "by space"));
      constexpr std::uint64_t kLength = 100;
      const std::size_t per_buffer = by_count ? 3 : 4;  // 4 messages leave 99 bytes of 499
      net::Record far_record;
      std::vector<std::unique_ptr<Buffer>> inboxes;
      far().statistics(true);
      for (std::size_t i = 0; i < buffers; ++i) {
        inboxes.push_back(buffer(by_count ? 4096 : 499, far_record));
        const std::uint32_t messages_max = by_count ? 3 : 100;
        ASSERT_EQ(far().add(*inboxes.back(), MessageReceive{.size_min = kLength, .messages_max = messages_max}),
                  Status::ok);
      }
      for (std::size_t i = 0; i < buffers * per_buffer; ++i) send(kLength, i);

      const auto entries = far_record.wait_for(buffers * per_buffer);
      for (std::size_t i = 0; i < entries.size(); ++i) {
        EXPECT_EQ(entries[i].status, Status::ok);
        EXPECT_EQ(entries[i].offset, i % per_buffer * kLength);
        EXPECT_EQ(entries[i].length, kLength);
        EXPECT_EQ(entries[i].is_final, i % per_buffer == per_buffer - 1);
        EXPECT_EQ(entries[i].was_queued, !entries[i].is_final);
        EXPECT_EQ(entries[i].sender, near_address_);
        EXPECT_TRUE(holds(*inboxes[i / per_buffer], entries[i].offset, kLength, i));
      }
      const auto queue = far().statistics().of(QueueKind::message_receive);
      EXPECT_EQ(queue.adds, buffers);
      EXPECT_EQ(queue.successes, buffers * per_buffer);
      EXPECT_EQ(queue.failures, 0U);
      EXPECT_EQ(queue.bytes_total, buffers * per_buffer * kLength);
      EXPECT_EQ(queue.bytes_max, kLength);
    }
  }
}

TEST_P(NetMessage, CancelOfAHalfFilledBufferKeepsWhatCame) {
  const auto inbox = buffer(1000, far_record_);
  ASSERT_EQ(far().add(*inbox, MessageReceive{.size_min = 10, .messages_max = 5}), Status::ok);
  send(100, 1);
  far_record_.wait_for(1);
  EXPECT_TRUE(far().cancel(*inbox));
  const auto entries = far_record_.wait_for(2);
  EXPECT_FALSE(entries[0].is_final);
  EXPECT_EQ(entries[1].status, Status::canceled);
  EXPECT_EQ(entries[1].length, 0U);
  EXPECT_TRUE(entries[1].is_final);
  EXPECT_TRUE(holds(*inbox, 0, 100, 1));
}

TEST_P(NetMessage, TheSenderIsTheEndPointThatIsKnown) {
  const net::EndPoint known = to_near();
  EXPECT_EQ(known, to_near());
  net::EndPoint seen;
  std::latch done(1);
  const auto inbox = buffer(100, far_record_);
  inbox->set_callback([&](const net::BufferEvent& event) {
    seen = event.sender;
    done.count_down();
  });
  ASSERT_EQ(far().add(*inbox, MessageReceive{}), Status::ok);
  send(10, 1);
  done.wait();
  EXPECT_EQ(seen, known);
}

// Whatever their lengths and whatever the path loses. Those in flight at the same time may overtake each other.
TEST_P(NetMessage, AMessageThatFollowsTheEndOfAnotherArrivesAfterIt) {
  constexpr std::size_t kMessages = 40;
  constexpr std::array<std::uint64_t, 4> kLengths{200'000, 8, 70'000, 1000};
  std::vector<std::unique_ptr<Buffer>> inboxes;
  for (std::size_t i = 0; i < kMessages; ++i) {
    inboxes.push_back(buffer(kLengths[0], far_record_));
    ASSERT_EQ(far().add(*inboxes.back(), MessageReceive{}), Status::ok);
  }
  for (std::size_t i = 0; i < kMessages; ++i) send(kLengths[i % kLengths.size()], i);
  const auto entries = far_record_.wait_for(kMessages);
  for (std::size_t i = 0; i < kMessages; ++i) {
    EXPECT_EQ(entries[i].length, kLengths[i % kLengths.size()]) << i;
    EXPECT_TRUE(holds(*inboxes[i], 0, entries[i].length, i));
  }
}

// The poller has more messages in flight than its table holds, and takes them in portions of varying size.
TEST_P(NetMessage, APollerGetsAllInOrderHoweverMuchItTakes) {
  constexpr std::uint64_t kMessages = 3000, kInFlight = 300, kSize = 64;  // the largest; there are eight sizes
  net::TransferMachine one(*domain_), other(*domain_);
  ASSERT_TRUE(one.deliver_synchronously() && other.deliver_synchronously());
  ASSERT_TRUE(one.start_and_wait(near_at("35:1")));
  const std::string there(other.start_and_wait(far_at("35:2")).value().address());
  const net::EndPoint to = one.create_end_point(there).value();
  std::uint64_t arrived = 0, ended = 0, queued = 0;
  std::vector<int> seen(kMessages);
  const auto inbox = Buffer::allocate(*domain_, kMessages * kSize).value();
  inbox->set_callback([&](const net::BufferEvent& event) {
    std::uint64_t number = 0;
    event.buffer.read(event.offset, std::as_writable_bytes(std::span(&number, 1)));
    ++seen.at(number);
    // Over UDP, retransmitted messages arrive later, also after a socket without room. The kernel, too, may exchange
    // datagrams of a thread that changes processors.
    if (GetParam().is_one_engine || GetParam().path == "shm") {
      EXPECT_EQ(number, arrived);
    }
    ++arrived;
  });
  ASSERT_EQ(other.add(*inbox, MessageReceive{.size_min = kSize, .messages_max = kMessages}), Status::ok);
  std::vector<std::unique_ptr<Buffer>> outboxes;
  std::vector<Buffer*> idle;
  for (std::uint64_t i = 0; i < kInFlight; ++i) {
    outboxes.push_back(Buffer::allocate(*domain_, kSize / 8 * (1 + i % 8)).value());
    outboxes.back()->set_callback([&](const net::BufferEvent& event) {
      EXPECT_EQ(event.status, Status::ok);
      ++ended;
      idle.push_back(&event.buffer);
    });
    idle.push_back(outboxes.back().get());
  }
  for (std::size_t portion = 1; ended < kMessages || arrived < kMessages; portion = portion % 290 + 7) {
    const std::size_t count = std::min({portion, idle.size(), static_cast<std::size_t>(kMessages - queued)});
    const std::vector<Buffer*> next(idle.end() - static_cast<std::ptrdiff_t>(count), idle.end());
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t number = queued + i;
      next[i]->write(0, std::as_bytes(std::span(&number, 1)));
    }
    const std::size_t added = one.add(next, MessageSend{.to = to}).count;
    queued += added;
    idle.erase(idle.end() - static_cast<std::ptrdiff_t>(count), idle.end());
    idle.insert(idle.end(), next.begin() + static_cast<std::ptrdiff_t>(added), next.end());
    const std::size_t told = other.deliver_all(portion % 40).value() + one.deliver_all(portion).value();
    if (told == 0 && added == 0) {
      ASSERT_TRUE(other.wait(std::chrono::steady_clock::now() + std::chrono::milliseconds(1)));
    }
  }
  EXPECT_EQ(ended, kMessages);
  EXPECT_EQ(std::ranges::count(seen, 1), static_cast<std::ptrdiff_t>(kMessages));
  EXPECT_EQ(other.messages_dropped(), 0U);
}

// The engine's thread leaves progress to a poller, so deliver_all(0) must make progress, too.
TEST_P(NetMessage, APollerWithoutABudgetMakesProgress) {
  net::TransferMachine other(*domain_);
  ASSERT_TRUE(other.deliver_synchronously());
  const std::string there(other.start_and_wait(far_at("35:2")).value().address());
  ASSERT_TRUE(far().stop_and_wait(StopMode::abort));  // its event thread would make progress, too
  const net::EndPoint to = near().create_end_point(there).value();
  const auto inbox = buffer(100, far_record_), outbox = buffer(10, near_record_);
  ASSERT_EQ(other.add(*inbox, MessageReceive{.messages_max = 10}), Status::ok);
  std::jthread poller([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) EXPECT_EQ(other.deliver_all(0), 0U);
  });
  for (std::size_t sent = 1; sent <= 5; ++sent) {
    ASSERT_EQ(near().add(*outbox, MessageSend{.to = to}), Status::ok);
    EXPECT_EQ(near_record_.wait_for(sent).back().status, Status::ok);
  }
  poller = {};
  EXPECT_TRUE(far_record_.entries().empty());
}

// Each message of several threads arrives exactly once. The few receive buffers are added again by their callbacks.
TEST_P(NetMessage, ManyThreadsLoseAndRepeatNothing) {
  constexpr std::size_t kThreads = 4, kEach = 250, kLength = 64;
  std::array<std::array<std::atomic<int>, kEach>, kThreads> seen{};
  std::latch arrived(kThreads * kEach);
  std::vector<std::unique_ptr<Buffer>> inboxes;
  for (int i = 0; i < 64; ++i) {
    inboxes.push_back(buffer(64 * kLength, far_record_));
    inboxes.back()->set_callback([&](const net::BufferEvent& event) {
      if (event.status != Status::ok) return;
      std::array<std::uint32_t, 2> who{};
      event.buffer.read(event.offset, std::as_writable_bytes(std::span(who)));
      ++seen.at(who[0]).at(who[1]);
      arrived.count_down();
      if (event.is_final)  // add() fails once the machine stops
        static_cast<void>(far().add(event.buffer, MessageReceive{.size_min = kLength, .messages_max = 64}));
    });
    ASSERT_EQ(far().add(*inboxes.back(), MessageReceive{.size_min = kLength, .messages_max = 64}), Status::ok);
  }
  const net::EndPoint to = to_far();
  std::vector<std::jthread> threads;
  for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      net::Record record;
      const auto one = buffer(kLength, record);
      for (std::uint32_t i = 0; i < kEach; ++i) {
        const std::array<std::uint32_t, 2> who{thread, i};
        one->write(0, std::as_bytes(std::span(who)));
        ASSERT_EQ(near().add(*one, MessageSend{.to = to}), Status::ok);
        ASSERT_EQ(record.wait_for(i + 1).back().status, Status::ok);
      }
    });
  }
  arrived.wait();
  threads.clear();
  ASSERT_TRUE(far().stop_and_wait(StopMode::abort));
  for (const auto& counts : seen) {
    for (const auto& count : counts) EXPECT_EQ(count, 1);
  }
  EXPECT_EQ(far().messages_dropped(), 0U);
  expect_settled(near());
  expect_settled(far());
}

// At any moment, adds exceed ended operations by at most the number of buffers.
TEST_P(NetMessage, TheFiguresAgreeAtEachMoment) {
  constexpr std::size_t kBuffers = 8, kLength = 16;
  constexpr std::uint64_t kMessages = 400;
  const net::EndPoint to = to_far();
  std::vector<std::unique_ptr<Buffer>> all;
  std::atomic<std::uint64_t> sent = 0, ended = 0;
  for (std::size_t i = 0; i < kBuffers; ++i) {
    all.push_back(Buffer::allocate(*domain_, kLength).value());
    ASSERT_EQ(all.back()->set_callback([&](const net::BufferEvent& event) {
      EXPECT_EQ(event.status, Status::ok);
      ++ended;
      if (sent++ < kMessages) {
        EXPECT_EQ(near().add(event.buffer, MessageSend{.to = to}), Status::ok);
      }
    }),
              Status::ok);
  }
  for (const auto& one : all) ASSERT_EQ(near().add(*one, MessageSend{.to = to}), Status::ok);
  const auto end = Instant::clock::now() + kPatience;
  while (ended < kMessages + kBuffers && Instant::clock::now() < end) {
    const net::QueueStatistics queue = near().statistics().of(QueueKind::message_send);
    ASSERT_LE(queue.successes + queue.failures, queue.adds);
    ASSERT_LE(queue.adds - queue.successes - queue.failures, kBuffers);
    ASSERT_EQ(queue.bytes_total, queue.successes * kLength);
  }
  const net::QueueStatistics queue = near().statistics().of(QueueKind::message_send);
  EXPECT_EQ(queue.adds, kMessages + kBuffers);
  EXPECT_EQ(queue.successes, kMessages + kBuffers);
}

TEST_P(NetMessage, StopAbortEndsEachBufferOnce) {
  constexpr std::size_t kBuffers = 100;
  std::vector<std::unique_ptr<Buffer>> buffers;
  const net::EndPoint to = to_far();
  std::size_t added = 0;
  for (std::size_t i = 0; i < kBuffers; ++i) {
    buffers.push_back(buffer(10000, near_record_));
    const Status status =
        i % 2 == 0 ? near().add(*buffers.back(), MessageReceive{}) : near().add(*buffers.back(), MessageSend{.to = to});
    ASSERT_TRUE(status == Status::ok || status == Status::again);
    added += status == Status::ok ? 1 : 0;
  }
  ASSERT_TRUE(near().stop_and_wait(StopMode::abort));
  const auto entries = near_record_.entries();
  EXPECT_EQ(entries.size(), added);
  // Nobody sends to near. Some of its own messages may have arrived.
  for (const auto& entry : entries) {
    EXPECT_TRUE(entry.status == Status::canceled ||
                (entry.status == Status::ok && entry.queue != net::QueueKind::message_receive));
  }
  for (const auto& one : buffers) EXPECT_FALSE(one->is_queued());
  expect_settled(near());
}

TEST_P(NetMessage, StopDrainWaitsForTheBuffers) {
  const auto inbox = buffer(100, far_record_);
  ASSERT_EQ(far().add(*inbox, MessageReceive{}), Status::ok);
  ASSERT_TRUE(far().stop(StopMode::drain));
  EXPECT_EQ(far().state(), net::MachineState::stopping);
  send(100, 5);
  ASSERT_EQ(far_record_.wait_for(1).at(0).status, Status::ok);
  while (far().state() != net::MachineState::stopped) std::this_thread::yield();
}

TEST(NetPaths, AreAllHere) {
  EXPECT_EQ(net_paths().size(), 10U) << "this host lacks 127.0.0.1 or ::1";
}

INSTANTIATE_TEST_SUITE_P(Paths, NetMessage, ::testing::ValuesIn(net_paths()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace fairlead::tests
