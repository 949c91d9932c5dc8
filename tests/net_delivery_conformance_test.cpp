// Callbacks, synchronous delivery and lost peers over each path, as Motr's tests sync and fail of its network
// transports require.

#include <poll.h>

#include <array>
#include <atomic>
#include <latch>
#include <thread>

#include "tests/net_delivery.hpp"

namespace fairlead::tests {
namespace {

using net::Buffer;
using net::Domain;
using net::MachineState;
using net::MessageReceive;
using net::MessageSend;
using net::PassiveReceive;
using net::PassiveSend;
using net::StopMode;
using net::TransferMachine;
using std::chrono::hours;
using std::chrono::milliseconds;

TEST_P(NetDelivery, RefusalsOfAddSayWhy) {
  const auto expect_why = [](Status status, Status wanted, std::string_view why) {
    EXPECT_EQ(status, wanted);
    const Error error = TransferMachine::explain_last();
    EXPECT_EQ(error.status, wanted);
    EXPECT_NE(error.message.find(why), std::string::npos) << error.message;
  };
  const auto one = buffer(100, near_record_);
  const auto without_callback = Buffer::allocate(*domain_, 100).value();
  Domain other = Domain::open().value();
  const auto foreign = Buffer::allocate(other, 100).value();
  std::array<std::byte, net::kDescriptorSize> damaged{};
  const auto invalid = Status::invalid;
  expect_why(near().add(*foreign, MessageReceive{}), invalid, "another domain");
  expect_why(near().add(*without_callback, MessageReceive{}), invalid, "no callback");
  expect_why(near().add(*one, MessageReceive{.size_min = 101}), invalid, "size_min");
  expect_why(near().add(*one, MessageReceive{.messages_max = 0}), invalid, "messages_max");
  expect_why(near().add(*one, MessageSend{.to = to_far(), .length = 101}), invalid, "length");
  expect_why(near().add(*one, MessageSend{}), invalid, "end point");
  expect_why(near().add(*one, MessageSend{.to = to_near()}), invalid, "another transfer machine");
  expect_why(near().add(*one, net::ActiveSend{.descriptor = damaged}), invalid, "descriptor");
  expect_why(near().add(*one, MessageReceive{.deadline = in(-hours(1))}), Status::too_late, "deadline");
  ASSERT_EQ(near().add(*one, MessageReceive{}), Status::ok);
  expect_why(near().add(*one, MessageReceive{}), Status::bad_state, "queued");
  ASSERT_TRUE(near().stop_and_wait(StopMode::abort));
  expect_why(near().add(*one, MessageReceive{}), Status::bad_state, "not started");
  // Another thread has its own last error.
  std::jthread([] { EXPECT_EQ(TransferMachine::explain_last().message, ""); }).join();
}

TEST_P(NetDelivery, ACallbackMayCallItsMachine) {
  const auto starter = Buffer::allocate(*domain_, 100).value();
  const auto victim = buffer(100, near_record_), next = buffer(100, near_record_);
  std::latch done(2);
  ASSERT_EQ(near().add(*victim, PassiveReceive{}), Status::ok);
  starter->set_callback([&](const net::BufferEvent& event) {
    done.count_down();
    if (event.queue == net::QueueKind::message_send) return;
    EXPECT_EQ(near().state(), MachineState::started);
    const auto to = near().create_end_point(far_address_);
    EXPECT_TRUE(to);
    EXPECT_TRUE(near().cancel(*victim));
    EXPECT_FALSE(near().cancel(*starter)) << "it has ended";
    EXPECT_EQ(near().add(*next, PassiveSend{}), Status::ok);
    EXPECT_EQ(near().add(*starter, MessageSend{.to = *to}), Status::ok) << "the same buffer, to another queue";
    EXPECT_EQ(near().statistics().of(net::QueueKind::passive_bulk_receive).adds, 2U);
    EXPECT_FALSE(near().stop_and_wait(StopMode::abort)) << "it would wait for itself";
    EXPECT_TRUE(near_record_.entries().empty()) << "one callback at a time";
  });
  ASSERT_EQ(near().add(*starter, PassiveReceive{}), Status::ok);
  EXPECT_TRUE(near().cancel(*starter));
  done.wait();
  EXPECT_EQ(near_record_.wait_for(1).at(0).status, Status::canceled);
  EXPECT_TRUE(next->is_queued());
}

// Both callbacks run at the same time. In the second round, the other machine is about to report the buffer's end.
TEST_P(NetDelivery, CallbacksOfTwoMachinesMayDestroyEachOthersBuffers) {
  for (const bool is_ending : {false, true}) {
    std::array<net::Record, 2> records;
    std::array<std::unique_ptr<Buffer>, 2> starters, pings, victims;
    const std::array<TransferMachine*, 2> machines{&near(), &far()};
    std::latch both(2), done(2);
    for (const std::size_t i : {0, 1}) {
      victims[i] = buffer(100, records[i]);
      pings[i] = Buffer::allocate(*domain_, 100).value();
      starters[i] = Buffer::allocate(*domain_, 100).value();
      starters[i]->set_callback([&, i](const net::BufferEvent&) {
        EXPECT_TRUE(machines[i]->cancel(*pings[i]));
        if (is_ending) {
          EXPECT_TRUE(machines[i]->cancel(*victims[i]));
        }
      });
      pings[i]->set_callback([&, i](const net::BufferEvent&) {
        both.arrive_and_wait();
        victims[1 - i].reset();
        done.count_down();
      });
      for (const auto& each : {&starters[i], &pings[i], &victims[i]})
        ASSERT_EQ(machines[i]->add(**each, PassiveReceive{}), Status::ok);
    }
    for (const std::size_t i : {0, 1}) EXPECT_TRUE(machines[i]->cancel(*starters[i]));
    done.wait();
    for (net::Record& record : records) {
      EXPECT_EQ(record.wait_for(1).at(0).status, Status::canceled);
      EXPECT_EQ(record.entries().size(), 1U);
    }
  }
}

// Each callback destroys the buffer whose callback another machine runs at that moment, so no machine may wait for
// another.
TEST_P(NetDelivery, CallbacksMayDestroyTheBuffersThatTheyAreCalledFor) {
  TransferMachine third(*domain_);
  ASSERT_TRUE(third.start_and_wait(near_at("36:*")));
  const std::array<TransferMachine*, 3> machines{&near(), &far(), &third};
  for (const std::size_t count : {2UL, 3UL}) {
    for (int round = 0; round < 50; ++round) {
      std::array<std::unique_ptr<Buffer>, 3> buffers;
      std::latch all(static_cast<std::ptrdiff_t>(count)), done(static_cast<std::ptrdiff_t>(count));
      for (std::size_t i = 0; i < count; ++i) {
        buffers[i] = Buffer::allocate(*domain_, 100).value();
        buffers[i]->set_callback([&, i, kept = std::make_shared<int>(7)](const net::BufferEvent&) {
          all.arrive_and_wait();
          buffers[(i + 1) % count].reset();
          EXPECT_EQ(*kept, 7) << "what the callback holds is there while it runs";
          done.count_down();
        });
        ASSERT_EQ(machines[i]->add(*buffers[i], PassiveReceive{}), Status::ok);
      }
      std::vector<Buffer*> queued;
      for (std::size_t i = 0; i < count; ++i) queued.push_back(buffers[i].get());
      for (std::size_t i = 0; i < count; ++i) EXPECT_TRUE(machines[i]->cancel(*queued[i]));
      done.wait();
      for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(buffers[i], nullptr);
    }
  }
  ASSERT_TRUE(third.stop_and_wait(StopMode::abort));
}

// If a callback destroys another buffer, that buffer's end is reported after the callback, not inside it.
TEST_P(NetDelivery, CallbacksDoNotNest) {
  constexpr std::size_t kBuffers = 50'000;
  std::vector<std::unique_ptr<Buffer>> chain(kBuffers);
  std::atomic<std::size_t> told = 0;
  int depth = 0, deepest = 0;
  net::DomainSettings settings{.engine = {{"path", GetParam().path}, {"operations_max", "65536"}}};
  Domain domain = Domain::open(settings).value();
  TransferMachine machine(domain);
  ASSERT_TRUE(machine.start_and_wait(GetParam().nid + ":*:34:*"));
  for (std::size_t i = 0; i < kBuffers; ++i) {
    chain[i] = Buffer::allocate(domain, 8).value();
    chain[i]->set_callback([&, i](const net::BufferEvent& event) {
      deepest = std::max(deepest, ++depth);
      EXPECT_EQ(event.status, Status::canceled);
      if (i + 1 < kBuffers) chain[i + 1].reset();
      --depth;
      ++told;
    });
    ASSERT_EQ(machine.add(*chain[i], MessageReceive{}), Status::ok) << TransferMachine::explain_last().message;
  }
  ASSERT_TRUE(machine.cancel(*chain[0]));
  while (told != kBuffers) std::this_thread::yield();
  EXPECT_EQ(deepest, 1);
  ASSERT_TRUE(machine.stop_and_wait(StopMode::drain));
  chain.clear();
  EXPECT_TRUE(machine.close());
  EXPECT_TRUE(domain.close());
}

bool is_readable(int descriptor, milliseconds at_most) {
  pollfd look{descriptor, POLLIN, 0};
  return ::poll(&look, 1, static_cast<int>(at_most.count())) == 1;
}

TEST_P(NetDelivery, ADescriptorWakesAnEventLoop) {
  constexpr milliseconds kAtMost(20'000);
  TransferMachine loops(*domain_);
  ASSERT_TRUE(loops.deliver_synchronously());
  EXPECT_EQ(loops.descriptor(), -1);
  EXPECT_EQ(loops.arm().error(), Status::bad_state);
  ASSERT_TRUE(loops.start_and_wait(far_at("35:1")));
  const auto to_loops = near().create_end_point(far_at("35:1")).value();
  const auto one = buffer(10, near_record_), inbox = buffer(1000, far_record_);
  ASSERT_EQ(loops.add(*inbox, MessageReceive{.size_min = 10, .messages_max = 4}), Status::ok);
  for (std::size_t round = 1; round <= 3; ++round) {
    while (!loops.arm().value()) EXPECT_TRUE(loops.deliver_all());
    // Elsewhere the engine's thread may still ring the doorbell for an event that has already been delivered.
    if (GetParam().nid == "0@lo") {
      EXPECT_FALSE(is_readable(loops.descriptor(), milliseconds(0)));
    }
    ASSERT_EQ(near().add(*one, MessageSend{.to = to_loops}), Status::ok);
    ASSERT_TRUE(is_readable(loops.descriptor(), kAtMost));
    while (round != 2 && loops.arm().value()) ASSERT_TRUE(is_readable(loops.descriptor(), kAtMost));
    while (far_record_.entries().size() < round) ASSERT_TRUE(loops.deliver_all());
    near_record_.wait_for(round);
  }
  while (!loops.arm().value()) EXPECT_TRUE(loops.deliver_all());
  // The descriptor also becomes readable for the end: queued buffers come back, then the machine stops.
  ASSERT_TRUE(loops.stop(StopMode::abort));
  while (loops.state() != MachineState::stopped) {
    ASSERT_TRUE(is_readable(loops.descriptor(), kAtMost));
    while (!loops.arm().value_or(true)) EXPECT_TRUE(loops.deliver_all());
  }
}

TEST_P(NetDelivery, OneThreadWaitsForSeveralMachines) {
  TransferMachine first(*domain_), second(*domain_);
  const std::array<TransferMachine*, 2> both{&first, &second};
  EXPECT_EQ(TransferMachine::wait_any(both, kNever).error(), Status::bad_state);
  EXPECT_EQ(TransferMachine::wait_any({}, kNever).error(), Status::invalid);
  std::vector<std::unique_ptr<Buffer>> inboxes;
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(both.at(i)->deliver_synchronously());
    ASSERT_TRUE(both.at(i)->start_and_wait(i == 0 ? far_at("35:1") : near_at("35:2")));
    inboxes.push_back(buffer(10, far_record_));
    ASSERT_EQ(both.at(i)->add(*inboxes.back(), MessageReceive{}), Status::ok);
  }
  EXPECT_EQ(TransferMachine::wait_any(both, in(milliseconds(1))).error(), Status::timed_out);
  const auto one = buffer(10, near_record_);
  std::size_t sent = 0;
  for (const std::size_t i : {1U, 0U}) {
    const auto to = near().create_end_point(both.at(i)->end_point().address()).value();
    std::jthread waiter([&] {
      EXPECT_EQ(TransferMachine::wait_any(both, in(std::chrono::seconds(20))), i);
      EXPECT_EQ(both.at(i)->deliver_all(), 1U);
    });
    std::this_thread::sleep_for(milliseconds(5));  // by then it usually sleeps, and a wait for one only does not end
    ASSERT_EQ(near().add(*one, MessageSend{.to = to}), Status::ok);
    near_record_.wait_for(++sent);
  }
  EXPECT_EQ(far_record_.entries().size(), 2U);
}

/// Waits for the peer_gone event and keeps the peer's name.
class PeerGone {
 public:
  net::MachineCallback callback() {
    return [this](const net::MachineEvent& event) {
      if (event.kind != net::MachineEvent::Kind::peer_gone) return;
      EXPECT_NE(event.status, Status::ok);
      EXPECT_FALSE(event.text.empty());
      peer_ = event.peer;
      ++told_;
    };
  }
  int told() const { return told_; }
  /// Valid once told() is not 0.
  const std::string& peer() const { return peer_; }

 private:
  std::string peer_;
  std::atomic<int> told_ = 0;
};

class NetDeliveryOfTwo : public NetDelivery {};

// An engine of this process ends with its last machine; one of a host engine stays for a while. Path `auto` is
// excluded, because each transport may report the loss. A machine without an end point of that engine gets no event.
TEST_P(NetDeliveryOfTwo, APeerThatIsGoneIsTold) {
  constexpr auto kAtMost = std::chrono::seconds(20);
  PeerGone automatic, synchronous, stranger;
  Domain domain = Domain::open({.engine = {{"path", GetParam().path}}}).value();
  auto peer = std::make_unique<TransferMachine>(domain);
  const std::string address(peer->start_and_wait(GetParam().nid + ":*:34:2").value().address());
  TransferMachine waits(*domain_, automatic.callback()), polls(*domain_, synchronous.callback()),
      knows_nobody(*domain_, stranger.callback());
  ASSERT_TRUE(polls.deliver_synchronously());
  ASSERT_TRUE(waits.start_and_wait(near_at("35:1")));
  ASSERT_TRUE(polls.start_and_wait(near_at("35:2")));
  ASSERT_TRUE(knows_nobody.start_and_wait(near_at("35:3")));
  const auto known = waits.create_end_point(address).value(), known_there = polls.create_end_point(address).value();
  const auto one = buffer(10, near_record_);
  ASSERT_EQ(waits.add(*one, MessageSend{.to = known}), Status::ok);
  ASSERT_EQ(near_record_.wait_for(1).at(0).status, Status::ok);
  peer.reset();
  const Instant end = in(kAtMost);
  while (automatic.told() == 0 && Instant::clock::now() < end) std::this_thread::yield();
  ASSERT_EQ(automatic.told(), 1);
  EXPECT_EQ(automatic.peer() + ":34:2", address);
  while (synchronous.told() == 0 && Instant::clock::now() < end) EXPECT_EQ(polls.deliver_all(), 0U);
  EXPECT_EQ(synchronous.told(), 1);
  EXPECT_EQ(stranger.told(), 0);
}

TEST_P(NetDelivery, MessagesStayPendingUntilTheyAreDelivered) {
  TransferMachine machine(*domain_);
  ASSERT_TRUE(machine.deliver_synchronously());
  ASSERT_TRUE(machine.start_and_wait(far_at("34:9")));
  std::vector<std::thread::id> threads;
  const auto inbox = buffer(400, far_record_);
  inbox->set_callback([&](const net::BufferEvent&) { threads.push_back(std::this_thread::get_id()); });
  ASSERT_EQ(machine.add(*inbox, MessageReceive{.size_min = 100, .messages_max = 4}), Status::ok);
  EXPECT_FALSE(machine.pending());
  EXPECT_EQ(machine.deliver_all().value(), 0U);

  std::atomic<int> signals = 0;
  ASSERT_EQ(machine.notify([&] { ++signals; }), Status::ok);
  const auto one = buffer(100, near_record_);
  const auto to = near().create_end_point(far_at("34:9")).value();
  for (std::size_t i = 1; i <= 4; ++i) {
    ASSERT_EQ(near().add(*one, MessageSend{.to = to}), Status::ok);
    near_record_.wait_for(i);
    while (one->is_queued()) std::this_thread::yield();
  }
  while (signals == 0) std::this_thread::yield();
  EXPECT_TRUE(threads.empty());
  EXPECT_TRUE(machine.pending());
  EXPECT_TRUE(machine.wait(kNever).value());
  std::size_t delivered = 0;
  while (delivered < 4) delivered += machine.deliver_all().value();
  EXPECT_EQ(threads, std::vector<std::thread::id>(4, std::this_thread::get_id()));
  EXPECT_EQ(signals, 1);
  EXPECT_FALSE(machine.pending());
}

// One thread polls both machines, and no other thread makes progress.
TEST_P(NetDelivery, PollingAloneMakesProgress) {
  TransferMachine left(*domain_), right(*domain_);
  ASSERT_TRUE(left.deliver_synchronously());
  ASSERT_TRUE(right.deliver_synchronously());
  ASSERT_TRUE(left.start_and_wait(near_at("34:11")));
  ASSERT_TRUE(right.start_and_wait(far_at("34:12")));
  const auto ping = buffer(8, near_record_), pong = buffer(8, far_record_);
  const auto to = left.create_end_point(far_at("34:12")).value();
  for (std::size_t round = 1; round <= 50; ++round) {
    ASSERT_EQ(right.add(*pong, MessageReceive{}), Status::ok);
    ASSERT_EQ(left.add(*ping, MessageSend{.to = to}), Status::ok);
    while (near_record_.entries().size() < round || far_record_.entries().size() < round) {
      left.deliver_all().value();
      right.deliver_all().value();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Paths, NetDeliveryOfTwo, ::testing::ValuesIn(net_paths_where([](const NetPath& path) {
                           return !path.is_one_engine && path.fault.empty() && path.path != "auto";
                         })),
                         [](const auto& test) { return test.param.name; });

INSTANTIATE_TEST_SUITE_P(Paths, NetDelivery, ::testing::ValuesIn(net_paths()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace fairlead::tests
