// Deadlines of buffers over each path, as Motr's test timeout of its network transports requires.

#include <chrono>
#include <set>
#include <span>

#include "tests/net_delivery.hpp"

namespace fairlead::tests {
namespace {

using net::Buffer;
using net::MessageReceive;
using net::MessageSend;
using net::PassiveReceive;
using net::PassiveSend;
using net::QueueKind;
using std::chrono::hours;
using std::chrono::milliseconds;

TEST_P(NetDelivery, DeadlinesEndEachPassiveQueue) {
  const auto message = buffer(100, far_record_), writable = buffer(100, far_record_),
             readable = buffer(100, far_record_);
  const auto untimed = buffer(100, far_record_), distant = buffer(100, far_record_);
  ASSERT_EQ(far().add(*untimed, PassiveReceive{}), Status::ok);
  ASSERT_EQ(far().add(*distant, PassiveReceive{.deadline = in(hours(1))}), Status::ok);
  Instant deadline;
  const auto add_briefly = [&](Buffer& buffer, auto operation) {  // for longer if this thread had to wait so long
    Status status = Status::too_late;
    for (auto most = milliseconds(20); status == Status::too_late; most *= 2) {
      deadline = operation.deadline = in(most);
      status = far().add(buffer, operation);
    }
    return status;
  };
  ASSERT_EQ(add_briefly(*message, MessageReceive{}), Status::ok);
  ASSERT_EQ(add_briefly(*writable, PassiveReceive{}), Status::ok);
  ASSERT_EQ(add_briefly(*readable, PassiveSend{}), Status::ok);
  for (const auto& entry : far_record_.wait_for(3)) EXPECT_EQ(entry.status, Status::timed_out);
  EXPECT_GE(Instant::clock::now(), deadline);  // of the last one
  EXPECT_TRUE(untimed->is_queued());
  EXPECT_TRUE(distant->is_queued());
  for (const QueueKind kind :
       {QueueKind::message_receive, QueueKind::passive_bulk_receive, QueueKind::passive_bulk_send}) {
    EXPECT_EQ(far().statistics().of(kind).deletes, 0U);
    EXPECT_EQ(far().statistics().of(kind).failures, 1U);
  }
}

TEST_P(NetDelivery, TheDeadlineOfAHalfFilledBufferIsTheBuffers) {
  const auto inbox = buffer(1000, far_record_), one = buffer(10, near_record_);
  ASSERT_EQ(far().add(*inbox, MessageReceive{.size_min = 10, .messages_max = 9, .deadline = in(milliseconds(300))}),
            Status::ok);
  ASSERT_EQ(near().add(*one, MessageSend{.to = to_far()}), Status::ok);
  const auto entries = far_record_.wait_for(2);
  EXPECT_EQ(entries[0].status, Status::ok);
  EXPECT_FALSE(entries[0].is_final);
  EXPECT_EQ(entries[1].status, Status::timed_out);
}

TEST_P(NetDelivery, AMessageBeforeTheDeadlineIsASuccessAndOneAfterItFindsNoBuffer) {
  const auto early = buffer(8, far_record_), late = buffer(8, far_record_), one = buffer(8, near_record_);
  ASSERT_EQ(far().add(*early, MessageReceive{.deadline = in(hours(1))}), Status::ok);
  ASSERT_EQ(near().add(*one, MessageSend{.to = to_far()}), Status::ok);
  EXPECT_EQ(far_record_.wait_for(1).at(0).status, Status::ok);
  EXPECT_EQ(near_record_.wait_for(1).at(0).status, Status::ok);
  ASSERT_EQ(far().add(*late, MessageReceive{.deadline = in(milliseconds(1))}), Status::ok);
  EXPECT_EQ(far_record_.wait_for(2).at(1).status, Status::timed_out);
  ASSERT_EQ(near().add(*one, MessageSend{.to = to_far()}), Status::ok);
  EXPECT_EQ(near_record_.wait_for(2).at(1).status, Status::ok);
  EXPECT_EQ(far().statistics().of(QueueKind::message_receive).successes, 1U);
  EXPECT_EQ(far().statistics().of(QueueKind::message_receive).failures, 1U);
}

// A message and a deadline come at about the same moment. Each buffer ends once, with or without a message. A message
// that comes too late for its own buffer may go into the next one.
TEST_P(NetDelivery, DeadlinesRaceWithSuccess) {
  constexpr std::uint64_t kRounds = 40;
  std::uint64_t received = 0, timed_out = 0, too_late = 0;
  std::set<std::uint64_t> numbers;
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    net::Record record;
    const auto inbox = buffer(8, record), one = buffer(8, near_record_);
    one->write(0, std::as_bytes(std::span(&round, 1)));
    const Status added = far().add(*inbox, MessageReceive{.deadline = in(std::chrono::microseconds(50 + round * 25))});
    if (added != Status::ok) {
      EXPECT_EQ(added, Status::too_late);
      ++too_late;
      continue;
    }
    ASSERT_EQ(near().add(*one, MessageSend{.to = to_far()}), Status::ok);
    const auto entries = record.wait_for(1);
    ASSERT_EQ(entries.size(), 1U);
    EXPECT_TRUE(entries[0].is_final);
    if (entries[0].status == Status::ok) {
      ++received;
      std::uint64_t number = kRounds;
      EXPECT_EQ(entries[0].length, 8U);
      inbox->read(0, std::as_writable_bytes(std::span(&number, 1)));
      EXPECT_LE(number, round);
      EXPECT_TRUE(numbers.insert(number).second) << number << " came twice";
    } else {
      ++timed_out;
      EXPECT_EQ(entries[0].status, Status::timed_out);
      EXPECT_EQ(entries[0].length, 0U);
    }
    near_record_.wait_for(round + 1 - too_late);
  }
  EXPECT_EQ(received + timed_out + too_late, kRounds);
  EXPECT_EQ(far().statistics().of(QueueKind::message_receive).successes, received);
  EXPECT_EQ(far().statistics().of(QueueKind::message_receive).failures, timed_out);
}

}  // namespace
}  // namespace fairlead::tests
