// Events: fields, order, what callbacks may do, and races of a completion with a cancel or a deadline.

#include <latch>
#include <thread>
#include <utility>

#include "net/machine_for_tests.hpp"

namespace fairlead::net {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

const engine::RemotePort kSender{base::SocketAddress::from_ip("10.0.0.9", 1).value(), 34U << 12 | 5};

TEST_F(MachineTest, AReceiveBufferTakesSeveralMessages) {
  start_synchronous();
  const auto one = buffer(100);
  ASSERT_EQ(machine_.add(*one, MessageReceive{.size_min = 10, .messages_max = 3}), Status::ok);
  fake_.core->complete(Status::ok, 30, 0, false, kSender);
  fake_.core->complete(Status::ok, 20, 30, false, kSender);
  EXPECT_EQ(deliver(), 2U);
  EXPECT_TRUE(one->is_queued());
  fake_.core->complete(Status::ok, 10, 50, true, kSender);
  EXPECT_EQ(deliver(), 1U);
  EXPECT_FALSE(one->is_queued());

  const auto entries = record_.entries();
  ASSERT_EQ(entries.size(), 3U);
  const std::uint64_t offsets[] = {0, 30, 50}, lengths[] = {30, 20, 10};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(entries[i].offset, offsets[i]);
    EXPECT_EQ(entries[i].length, lengths[i]);
    EXPECT_EQ(entries[i].is_final, i == 2);
    EXPECT_EQ(entries[i].was_queued, i != 2);
    EXPECT_EQ(entries[i].sender, "10.0.0.9@udp:1:34:5");
  }
  const auto queue = of(QueueKind::message_receive);
  EXPECT_EQ(queue.adds, 1U);
  EXPECT_EQ(queue.successes, 3U);
  EXPECT_EQ(queue.failures, 0U);
  EXPECT_EQ(queue.bytes_total, 60U);
  EXPECT_EQ(queue.bytes_max, 30U);
  EXPECT_GE(queue.time_in_queue, Duration::zero());
  EXPECT_EQ(fake_.core->reserved(), 0U);
}

TEST_F(MachineTest, AnEventNamesItsMachineAndTheRoomThatIsLeft) {
  start_synchronous();
  const auto one = Buffer::allocate(fake_.domain, 100).value();
  std::vector<std::uint64_t> rooms;
  ASSERT_EQ(one->set_callback([&](const BufferEvent& event) {
    EXPECT_EQ(event.machine, &machine_);
    rooms.push_back(event.room());
  }),
            Status::ok);
  ASSERT_EQ(machine_.add(*one, MessageReceive{.size_min = 10, .messages_max = 3}), Status::ok);
  fake_.core->complete(Status::ok, 30, 0, false, kSender);
  fake_.core->complete(Status::ok, 20, 30, false, kSender);
  fake_.core->complete(Status::ok, 10, 50, true, kSender);
  EXPECT_EQ(deliver(), 3U);
  EXPECT_EQ(rooms, (std::vector<std::uint64_t>{70, 50, 0}));
}

// A received message is sent on in the same buffer.
TEST_F(MachineTest, AFinalCallbackMaySetThoseOfTheOtherQueues) {
  start_synchronous();
  const EndPoint to = peer();
  const auto one = Buffer::allocate(fake_.domain, 100).value();
  int sent = 0;
  ASSERT_EQ(
      one->set_callback(QueueKind::message_receive,
                        [&](const BufferEvent& event) {
                          const auto count = [&](const BufferEvent&) { ++sent; };
                          const Status allowed = event.is_final ? Status::ok : Status::bad_state;
                          EXPECT_EQ(event.buffer.set_callback(QueueKind::message_send, count), allowed);
                          EXPECT_EQ(event.buffer.set_callback(QueueKind::message_receive, count), Status::bad_state)
                              << "it runs";
                          EXPECT_EQ(event.buffer.set_callback(count), Status::bad_state);
                          if (!event.is_final) return;
                          EXPECT_EQ(machine_.add(event.buffer, MessageSend{.to = to}), Status::ok);
                          EXPECT_EQ(event.buffer.set_callback(QueueKind::message_send, count), Status::bad_state)
                              << "it is queued";
                        }),
      Status::ok);
  ASSERT_EQ(machine_.add(*one, MessageReceive{.size_min = 10, .messages_max = 2}), Status::ok);
  fake_.core->complete(Status::ok, 30, 0, false, kSender);
  fake_.core->complete(Status::ok, 30, 30, true, kSender);
  EXPECT_EQ(deliver(), 2U);
  fake_.core->complete(Status::ok);
  EXPECT_EQ(deliver(), 1U);
  EXPECT_EQ(sent, 1);
}

// Their end points go when the table has grown, unless the application refers to them.
TEST_F(MachineTest, StrangersAreForgotten) {
  constexpr std::uint16_t kStrangers = 3000;
  start_synchronous();
  Destination first;
  EndPoint second;
  const auto inbox = buffer();
  ASSERT_EQ(inbox->set_callback([&](const BufferEvent& event) {
    if (event.offset == 0) first = event.sender;
    if (event.offset == 1) second = event.sender;
  }),
            Status::ok);
  ASSERT_EQ(machine_.add(*inbox, MessageReceive{.size_min = 1, .messages_max = 4096}), Status::ok);
  const auto outbox = buffer();
  for (std::uint16_t i = 1; i <= kStrangers; ++i) {
    fake_.core->arrive(1, {base::SocketAddress::from_ip("10.0.0.9", i).value(), 34U << 12 | 5});
    if (i % 100 != 0) continue;
    while (deliver() > 0) continue;
    if (i == 100) {
      EXPECT_EQ(machine_.add(*outbox, MessageSend{.to = first}), Status::ok);
    }
  }
  const auto other = buffer();
  EXPECT_EQ(machine_.add(*other, MessageSend{.to = first}), Status::invalid);
  EXPECT_EQ(machine_.add(*other, MessageSend{.to = second}), Status::ok);
  EXPECT_EQ(second.address(), "10.0.0.9@udp:2:34:5");
}

TEST_F(MachineTest, TheSenderIsTheKnownEndPoint) {
  start_synchronous();
  const EndPoint known = peer();
  EndPoint seen;
  const auto one = Buffer::allocate(fake_.domain, 100).value();
  one->set_callback([&](const BufferEvent& event) { seen = event.sender; });
  ASSERT_EQ(machine_.add(*one, MessageReceive{}), Status::ok);
  fake_.core->complete(Status::ok, 1, 0, true, kSender);
  deliver();
  EXPECT_EQ(seen, known);
}

TEST_F(MachineTest, FailedEventsCarryNoLength) {
  start_synchronous();
  const auto one = buffer(100);
  ASSERT_EQ(machine_.add(*one, PassiveReceive{}), Status::ok);
  fake_.core->complete(Status::restarted, 50, 7, true, kSender);
  deliver();
  const auto entry = record_.entries().at(0);
  EXPECT_EQ(entry.status, Status::restarted);
  EXPECT_EQ(entry.length, 0U);
  EXPECT_EQ(entry.offset, 0U);
  EXPECT_EQ(entry.sender, "");
  EXPECT_EQ(of(QueueKind::passive_bulk_receive).failures, 1U);
  EXPECT_EQ(of(QueueKind::passive_bulk_receive).bytes_total, 0U);
}

TEST_F(MachineTest, SendsCountTheirOwnLength) {
  start_synchronous();
  const EndPoint to = peer();
  const auto one = buffer(100);
  for (const std::uint64_t length : {40, 60}) {
    ASSERT_EQ(machine_.add(*one, MessageSend{.to = to, .length = length}), Status::ok);
    fake_.core->complete(Status::ok, 999);
    deliver();
  }
  EXPECT_EQ(record_.entries().at(0).length, 0U);
  EXPECT_EQ(of(QueueKind::message_send).bytes_total, 100U);
  EXPECT_EQ(of(QueueKind::message_send).bytes_max, 60U);
  EXPECT_EQ(machine_.statistics(true).of(QueueKind::message_send).adds, 2U);
  EXPECT_EQ(of(QueueKind::message_send).adds, 0U);
}

TEST_F(MachineTest, CancelOfAQueuedBuffer) {
  start_synchronous();
  const auto one = buffer();
  ASSERT_EQ(machine_.add(*one, PassiveReceive{}), Status::ok);
  EXPECT_TRUE(machine_.cancel(*one));
  EXPECT_TRUE(machine_.cancel(*one));  // still queued, because its event is not delivered yet
  EXPECT_TRUE(one->is_queued());
  EXPECT_EQ(deliver(), 1U);
  EXPECT_FALSE(machine_.cancel(*one));
  EXPECT_EQ(deliver(), 0U);
  EXPECT_EQ(record_.entries().at(0).status, Status::canceled);
  EXPECT_EQ(of(QueueKind::passive_bulk_receive).deletes, 1U);
  EXPECT_EQ(of(QueueKind::passive_bulk_receive).failures, 1U);
}

TEST_F(MachineTest, ACompletionThatWinsOverACancelKeepsItsStatus) {
  start_synchronous();
  const auto one = buffer();
  ASSERT_EQ(machine_.add(*one, PassiveReceive{}), Status::ok);
  fake_.core->complete(Status::ok, 10);
  EXPECT_TRUE(machine_.cancel(*one));
  EXPECT_EQ(deliver(), 1U);
  EXPECT_EQ(record_.entries().at(0).status, Status::ok);
  EXPECT_EQ(record_.entries().at(0).length, 10U);
}

TEST_F(MachineTest, ADeadlineEndsABuffer) {
  start();
  const auto one = buffer();
  const Instant deadline = Instant::clock::now() + milliseconds(5);
  ASSERT_EQ(machine_.add(*one, PassiveReceive{.deadline = deadline}), Status::ok);
  EXPECT_EQ(record_.wait_for(1).at(0).status, Status::timed_out);
  EXPECT_GE(Instant::clock::now(), deadline);
  EXPECT_EQ(of(QueueKind::passive_bulk_receive).deletes, 0U);
  EXPECT_EQ(of(QueueKind::passive_bulk_receive).failures, 1U);
}

TEST_F(MachineTest, DeadlinesExpireInTheirOrder) {
  start();
  std::vector<std::uint64_t> order;
  const auto untimed = buffer(1), late = buffer(2), early = buffer(3);
  for (const auto& one : {untimed.get(), late.get(), early.get()}) {
    one->set_callback([&order, callback = record_.callback()](const BufferEvent& event) {
      order.push_back(event.buffer.size());
      callback(event);
    });
  }
  const Instant time = Instant::clock::now();
  ASSERT_EQ(machine_.add(*untimed, PassiveReceive{}), Status::ok);
  ASSERT_EQ(machine_.add(*late, PassiveSend{.deadline = time + milliseconds(40)}), Status::ok);
  ASSERT_EQ(machine_.add(*early, MessageReceive{.deadline = time + milliseconds(10)}), Status::ok);
  record_.wait_for(2);
  EXPECT_EQ(order, (std::vector<std::uint64_t>{3, 2}));
  EXPECT_TRUE(untimed->is_queued());
}

TEST_F(MachineTest, ASuccessThatRacesWithADeadlineStaysOne) {
  start_synchronous();
  fake_.core->hold_cancels();
  const auto success = buffer(), failure = buffer(), overdue = buffer();
  const Instant deadline = Instant::clock::now() + milliseconds(1);
  for (Buffer* one : {success.get(), failure.get(), overdue.get()}) {
    ASSERT_EQ(machine_.add(*one, PassiveReceive{.deadline = deadline}), Status::ok);
  }
  const auto all_cancelled = [&] {
    for (const auto& operation : fake_.core->submitted()) {
      if (!operation.is_cancelled) return false;
    }
    return true;
  };
  while (!all_cancelled()) EXPECT_FALSE(machine_.pending());
  fake_.core->complete(Status::ok, 4);
  fake_.core->complete(Status::silent);
  fake_.core->complete(Status::canceled);
  EXPECT_EQ(deliver(), 3U);
  EXPECT_EQ(record_.entries().at(0).status, Status::ok);
  EXPECT_EQ(record_.entries().at(1).status, Status::silent);
  EXPECT_EQ(record_.entries().at(2).status, Status::timed_out);
}

TEST_F(MachineTest, WhoAsksFirstNamesTheEnd) {
  start_synchronous();
  fake_.core->hold_cancels();
  const auto one = buffer();
  ASSERT_EQ(machine_.add(*one, PassiveReceive{.deadline = Instant::clock::now() + hours(1)}), Status::ok);
  EXPECT_TRUE(machine_.cancel(*one));
  fake_.core->complete(Status::canceled);
  deliver();
  EXPECT_EQ(record_.entries().at(0).status, Status::canceled);
}

TEST_F(MachineTest, ANewLimitOfTheSameLengthDoesNotWakeTheThread) {
  start();
  const EndPoint to = peer();
  const auto one = buffer();
  const auto round = [&](std::size_t count) {
    ASSERT_EQ(machine_.add(*one, MessageSend{.to = to, .deadline = Instant::clock::now() + hours(1)}), Status::ok);
    fake_.core->complete(Status::ok);
    record_.wait_for(count);
    while (one->is_queued()) std::this_thread::yield();
  };
  round(1);
  const std::uint64_t before = fake_.core->waits();
  for (std::size_t count = 2; count <= 51; ++count) round(count);
  EXPECT_LE(fake_.core->waits(), before + 51);  // one wait per event, none for the deadlines
}

TEST_F(MachineTest, TheFinalCallbackMayAddTheBufferAgain) {
  start();
  const EndPoint to = peer();
  const auto one = Buffer::allocate(fake_.domain, 10).value();
  std::latch done(1);
  int rounds = 0;
  one->set_callback([&](const BufferEvent& event) {
    if (++rounds == 10) return done.count_down();
    const bool sends = rounds % 2 == 0;
    EXPECT_EQ(sends ? machine_.add(event.buffer, MessageSend{.to = to}) : machine_.add(event.buffer, PassiveReceive{}),
              Status::ok);
    EXPECT_TRUE(machine_.create_end_point("10.0.0.8@udp:1:34:5"));
    fake_.core->complete(Status::ok, 1);
  });
  ASSERT_EQ(machine_.add(*one, MessageSend{.to = to}), Status::ok);
  fake_.core->complete(Status::ok);
  done.wait();
}

TEST_F(MachineTest, CallbacksCannotBeSetDuringACallback) {
  start_synchronous();
  const auto one = Buffer::allocate(fake_.domain, 10).value();
  Status inside = Status::ok;
  one->set_callback([&](const BufferEvent& event) { inside = event.buffer.set_callback(record_.callback()); });
  ASSERT_EQ(machine_.add(*one, PassiveReceive{}), Status::ok);
  fake_.core->complete(Status::ok);
  deliver();
  EXPECT_EQ(inside, Status::bad_state);
  EXPECT_EQ(one->set_callback(record_.callback()), Status::ok);
}

TEST_F(MachineTest, ABufferMayDestroyItselfInItsFinalCallback) {
  start();
  const EndPoint to = peer();
  std::latch done(1);
  auto one = buffer().release();
  one->close().value();
  delete one;
  one = Buffer::allocate(fake_.domain, 10).value().release();
  one->set_callback([&done, text = std::string(100, 'x')](const BufferEvent& event) {
    delete &event.buffer;
    EXPECT_EQ(text.size(), 100U);
    done.count_down();
  });
  ASSERT_EQ(machine_.add(*one, MessageSend{.to = to}), Status::ok);
  fake_.core->complete(Status::ok);
  done.wait();
}

TEST_F(MachineTest, DestroyingAQueuedBufferDeliversItsEnd) {
  start();
  {
    const auto one = buffer();
    ASSERT_EQ(machine_.add(*one, PassiveReceive{}), Status::ok);
  }
  EXPECT_EQ(record_.entries().at(0).status, Status::canceled);
}

TEST_F(MachineTest, DestroyingAQueuedBufferInACallbackOrUnderSynchronousDelivery) {
  start_synchronous();
  auto victim = buffer();
  const auto one = Buffer::allocate(fake_.domain, 10).value();
  one->set_callback([&](const BufferEvent&) { victim.reset(); });
  ASSERT_EQ(machine_.add(*victim, PassiveReceive{}), Status::ok);
  ASSERT_EQ(machine_.add(*one, PassiveReceive{}), Status::ok);
  fake_.core->complete_nth(1, Status::ok);
  EXPECT_EQ(deliver(), 1U);
  EXPECT_EQ(record_.entries().size(), 0U) << "a callback in a callback";
  EXPECT_EQ(deliver(), 1U);
  EXPECT_EQ(record_.entries().size(), 1U);

  auto last = buffer();
  ASSERT_EQ(machine_.add(*last, PassiveReceive{}), Status::ok);
  last.reset();
  EXPECT_EQ(record_.entries().size(), 2U);
}

TEST_F(MachineTest, SynchronousDeliveryIsOnTheCallersThread) {
  start_synchronous();
  const auto one = Buffer::allocate(fake_.domain, 10).value();
  std::thread::id where;
  one->set_callback([&](const BufferEvent&) { where = std::this_thread::get_id(); });
  EXPECT_FALSE(machine_.pending());
  EXPECT_EQ(deliver(), 0U);
  ASSERT_EQ(machine_.add(*one, PassiveReceive{}), Status::ok);
  fake_.core->complete(Status::ok);
  EXPECT_TRUE(machine_.pending());
  EXPECT_EQ(where, std::thread::id());
  EXPECT_EQ(deliver(), 1U);
  EXPECT_EQ(where, std::this_thread::get_id());
  EXPECT_FALSE(machine_.pending());
}

TEST_F(MachineTest, DeliveryHasABudget) {
  start_synchronous();
  std::vector<std::unique_ptr<Buffer>> buffers;
  for (int i = 0; i < 10; ++i) {
    buffers.push_back(buffer());
    ASSERT_EQ(machine_.add(*buffers.back(), PassiveReceive{}), Status::ok);
  }
  for (int i = 0; i < 10; ++i) fake_.core->complete(Status::ok);
  EXPECT_EQ(machine_.deliver_all(4).value(), 4U);
  EXPECT_EQ(machine_.deliver_all(0).value(), 0U);
  EXPECT_EQ(machine_.deliver_all(100).value(), 6U);
}

TEST_F(MachineTest, DeliveryInsideACallbackDoesNothing) {
  start_synchronous();
  const auto one = Buffer::allocate(fake_.domain, 10).value();
  const auto two = buffer();
  std::size_t inside = 99;
  one->set_callback([&](const BufferEvent&) { inside = deliver(); });
  ASSERT_EQ(machine_.add(*one, PassiveReceive{}), Status::ok);
  ASSERT_EQ(machine_.add(*two, PassiveReceive{}), Status::ok);
  fake_.core->complete(Status::ok);
  fake_.core->complete(Status::ok);
  EXPECT_EQ(deliver(), 2U);
  EXPECT_EQ(inside, 0U);
}

TEST_F(MachineTest, NotifySignalsOnce) {
  start_synchronous();
  const auto one = buffer(), two = buffer();
  ASSERT_EQ(machine_.add(*one, PassiveReceive{}), Status::ok);
  ASSERT_EQ(machine_.add(*two, PassiveReceive{}), Status::ok);
  std::atomic<int> signals = 0;
  std::latch first(1), second(1);
  ASSERT_EQ(machine_.notify([&] {
    ++signals;
    first.count_down();
  }),
            Status::ok);
  fake_.core->complete(Status::ok);
  first.wait();
  fake_.core->complete(Status::ok);
  EXPECT_EQ(deliver(), 2U);
  EXPECT_EQ(signals, 1);
  // An event that is pending already signals at once.
  ASSERT_EQ(machine_.add(*one, PassiveReceive{}), Status::ok);
  fake_.core->complete(Status::ok);
  ASSERT_EQ(machine_.notify([&] {
    ++signals;
    second.count_down();
  }),
            Status::ok);
  second.wait();
  EXPECT_EQ(signals, 2);
  EXPECT_EQ(deliver(), 1U);
}

TEST_F(MachineTest, WaitEndsWithAnEventADeadlineOrTheStop) {
  start_synchronous();
  EXPECT_FALSE(machine_.wait(Instant::clock::now() + milliseconds(1)).value());
  const auto one = buffer();
  ASSERT_EQ(machine_.add(*one, PassiveReceive{}), Status::ok);
  std::jthread completer([&] { fake_.core->complete(Status::ok); });
  EXPECT_TRUE(machine_.wait(kNever).value());
  EXPECT_EQ(deliver(), 1U);
  std::jthread stopper([&] { EXPECT_TRUE(machine_.stop(StopMode::abort)); });
  while (machine_.wait(kNever).value_or(false)) {
  }
}

TEST_F(MachineTest, SynchronousCallsNeedSynchronousDelivery) {
  EXPECT_EQ(machine_.deliver_all().error(), Status::bad_state);
  start();
  EXPECT_EQ(machine_.deliver_all().error(), Status::bad_state);
  EXPECT_EQ(machine_.wait(kNever).error(), Status::bad_state);
  EXPECT_EQ(machine_.notify([] {}), Status::bad_state);
  EXPECT_FALSE(machine_.pending());
  EXPECT_FALSE(machine_.deliver_synchronously());
}

TEST_F(MachineTest, DropsBecomeAnErrorEvent) {
  start();
  fake_.core->drop_message();
  while (machine_events_told_ < 2) std::this_thread::yield();
  ASSERT_TRUE(machine_.stop_and_wait(StopMode::drain));
  const std::vector<std::pair<MachineEvent::Kind, MachineState>> expected{
      {MachineEvent::Kind::state_change, MachineState::started},
      {MachineEvent::Kind::error, MachineState::undefined},
      {MachineEvent::Kind::state_change, MachineState::stopped}};
  EXPECT_EQ(machine_events_, expected);
  EXPECT_EQ(machine_.messages_dropped(), 1U);
}

TEST_F(MachineTest, TellsOnceThatItsHostEngineHasEnded) {
  start();
  fake_.core->end();
  while (machine_events_told_ < 2) std::this_thread::yield();
  ASSERT_TRUE(machine_.stop_and_wait(StopMode::abort));
  ASSERT_EQ(machine_events_.size(), 3U);
  EXPECT_EQ(machine_events_[1].first, MachineEvent::Kind::error);
}

}  // namespace
}  // namespace fairlead::net
