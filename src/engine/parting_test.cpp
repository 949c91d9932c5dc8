// An engine parts from peers that share memory with it, so that it can be replaced. Nothing is lost, repeated or
// delayed for long: both sides go on over the network, and meet again afterwards.

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "engine/engine_pair_for_tests.hpp"
#include "engine/handover.hpp"

namespace fairlead::engine {
namespace {

class Parting : public EnginePair {
 protected:
  void step() {
    now_ += 25us;
    network_.advance(now_);
    near_.engine->progress(now_);
    far_.engine->progress(now_);
  }
  template <typename Condition>
  bool steps_until(Condition&& condition) {
    for (int i = 0; i < 40'000; ++i) {
      if (condition()) return true;
      step();
    }
    return false;
  }
  void part(DirectSide& side, bool is_parting = true) {
    Handover(*side.engine).part_from_local_peers(is_parting, now_);
  }
  static std::string obstacle(DirectSide& side) {
    std::string why;
    return Handover(*side.engine).has_parted(why) ? "" : why;
  }
  static bool are_met(DirectSide& side) {
    std::uint32_t open = 0;
    for (std::uint32_t slot = 0; slot < side.engine->connections()->peers().size(); ++slot)
      open += side.engine->connections()->peer(slot).state == shm::Connection::State::open ? 1 : 0;
    return open == 1;
  }
  /// Posts a receive for each message, and sends it. The first bytes of a message are its number.
  void send(DirectSide& from, DirectSide& to, std::uint16_t to_number, std::size_t bytes) {
    Message& message = messages_.emplace_back();
    message.sent.resize(bytes);
    message.got.resize(kMost);
    for (std::size_t i = 0; i < bytes; ++i) message.sent[i] = static_cast<std::byte>((i * 7 + messages_.size()) >> 1);
    const std::uint64_t number = messages_.size() - 1;
    std::memcpy(message.sent.data(), &number, sizeof number);
    message.source = {message.sent.data(), bytes};
    message.target = {message.got.data(), kMost};
    OperationHandle operation;
    ASSERT_EQ(to.engine->messages().post_receive(
                  to.port, {.memory = {&message.target, 1}, .size_min = 1, .cookie = number}, operation),
              Status::ok);
    ASSERT_EQ(from.engine->messages().send(
                  from.port,
                  {.to = {direct_place(to_number), kPort}, .part = {{&message.source, 1}, bytes, kOfSends + number}},
                  operation, now_),
              Status::ok);
  }
  /// Takes events; each operation must end once, with success. A receive may get any of the messages.
  void take_events() {
    for (DirectSide* side : {&near_, &far_}) {
      while (const auto event = side->event()) {
        EXPECT_EQ(event->status, Status::ok) << event->cookie;
        EXPECT_EQ(++ended_[event->cookie], 1) << "operation " << event->cookie;
        if (event->cookie >= kOfSends) continue;
        const std::vector<std::byte>& got = messages_[event->cookie].got;
        std::uint64_t number = 0;
        std::memcpy(&number, got.data(), sizeof number);
        ASSERT_LT(number, messages_.size());
        EXPECT_EQ(++arrived_[number], 1) << "message " << number;
        const std::vector<std::byte>& sent = messages_[number].sent;
        EXPECT_EQ(event->length, sent.size());
        EXPECT_EQ(std::memcmp(got.data(), sent.data(), sent.size()), 0) << "message " << number;
      }
    }
  }
  bool is_all_done() {
    take_events();
    return ended_.size() == 2 * messages_.size();
  }

  static constexpr std::size_t kMost = 100'000;
  static constexpr std::uint64_t kOfSends = 1U << 20;
  struct Message {
    std::vector<std::byte> sent, got;
    iovec source{}, target{};
  };
  std::deque<Message> messages_;
  std::map<std::uint64_t, int> ended_, arrived_;
};

TEST_F(Parting, LosesAndRepeatsNothingWhicheverSideAsks) {
  constexpr std::array<std::size_t, 4> kSizes{16, 2000, 20'000, kMost};
  for (const bool is_near_asking : {false, true}) {
    for (int round = 0; round < 16; ++round) {
      if (round == 8) part(is_near_asking ? near_ : far_);
      for (const std::size_t bytes : kSizes) {
        send(near_, far_, 2, bytes);
        send(far_, near_, 1, bytes);
      }
      for (int i = 0; i < 3; ++i) step();
      take_events();
    }
    EXPECT_TRUE(steps_until([&] { return is_all_done() && obstacle(near_).empty() && obstacle(far_).empty(); }))
        << ended_.size() << " of " << 2 * messages_.size() << " " << obstacle(near_) << obstacle(far_);
    // The next messages use the network.
    const std::uint64_t before = near_.counter("shm.messages_sent");
    send(near_, far_, 2, 100);
    EXPECT_TRUE(steps_until([&] { return is_all_done(); }));
    EXPECT_EQ(near_.counter("shm.messages_sent"), before);
    // They meet again, and the next ones use shared memory.
    part(is_near_asking ? near_ : far_, false);
    EXPECT_TRUE(steps_until([&] { return are_met(near_) && are_met(far_); }));
    for (int i = 0; i < 100; ++i) step();
    send(near_, far_, 2, 100);
    EXPECT_TRUE(steps_until([&] { return is_all_done(); }));
    EXPECT_GT(near_.counter("shm.messages_sent"), before);
  }
  EXPECT_EQ(near_.counter("shm.messages_failed") + far_.counter("shm.messages_failed"), 0u);
}

TEST_F(Parting, OfBothSidesAtOnce) {
  for (int i = 0; i < 10; ++i) {
    send(near_, far_, 2, 50'000);
    send(far_, near_, 1, 50'000);
  }
  part(near_);
  part(far_);
  EXPECT_TRUE(steps_until([&] { return is_all_done() && obstacle(near_).empty() && obstacle(far_).empty(); }));
  part(near_, false);
  step();
  EXPECT_FALSE(are_met(near_)) << "the other side admits nobody";
  part(far_, false);
  EXPECT_TRUE(steps_until([&] { return are_met(near_) && are_met(far_); }));
}

TEST_F(Parting, PutsAndGetsEndWithTheirResult) {
  std::vector<std::byte> here(kMost, std::byte{1}), there(kMost, std::byte{2});
  iovec mine{here.data(), kMost}, theirs{there.data(), kMost};
  for (const OperationKind kind : {OperationKind::put, OperationKind::get}) {
    std::ranges::fill(here, std::byte{1});
    std::ranges::fill(there, std::byte{2});
    OperationHandle operation;
    std::uint64_t key = 0;
    const bool is_put = kind == OperationKind::put;
    ASSERT_EQ(
        far_.engine->messages().expose(
            far_.port, {.memory = {&theirs, 1}, .length = kMost, .is_writable = is_put, .cookie = 7}, operation, key),
        Status::ok);
    ASSERT_EQ(near_.engine->messages().transfer(near_.port, kind,
                                                {.target = {direct_place(2), kPort},
                                                 .target_epoch = 102,
                                                 .key = key,
                                                 .memory = {&mine, 1},
                                                 .length = kMost,
                                                 .cookie = 8},
                                                operation, now_),
              Status::ok);
    part(is_put ? near_ : far_);
    int ended = 0;
    EXPECT_TRUE(steps_until([&] {
      for (DirectSide* side : {&near_, &far_})
        while (const auto event = side->event()) {
          EXPECT_EQ(event->status, Status::ok);
          ++ended;
        }
      return ended == 2 && obstacle(near_).empty() && obstacle(far_).empty();
    }));
    EXPECT_EQ(std::memcmp(here.data(), there.data(), kMost), 0);
    EXPECT_EQ(here[0], is_put ? std::byte{1} : std::byte{2});
    part(is_put ? near_ : far_, false);
    EXPECT_TRUE(steps_until([&] { return are_met(near_) && are_met(far_); }));
  }
}

TEST_F(Parting, WaitsForALoan) {
  const std::span<std::byte> lent = near_.shared(70'000);
  std::vector<std::byte> buffer(70'000);
  iovec source{lent.data(), lent.size()}, target{buffer.data(), buffer.size()};
  OperationHandle operation;
  ASSERT_EQ(far_.engine->messages().post_receive(
                far_.port, {.memory = {&target, 1}, .size_min = 1, .takes_loans = true, .cookie = 6}, operation),
            Status::ok);
  ASSERT_EQ(near_.engine->messages().send(
                near_.port, {.to = {direct_place(2), kPort}, .part = {{&source, 1}, lent.size(), 5}, .is_loan = true},
                operation, now_),
            Status::ok);
  std::optional<Completion> event;
  ASSERT_TRUE(steps_until([&] { return (event = far_.event()).has_value(); }));
  part(far_);
  for (int i = 0; i < 1000; ++i) step();
  EXPECT_NE(obstacle(far_).find("something between them is not done"), std::string::npos);
  far_.engine->messages().give_back(far_.port, event->offset, now_);
  EXPECT_TRUE(steps_until([&] { return obstacle(near_).empty() && obstacle(far_).empty(); }));
  ASSERT_TRUE(steps_until([&] { return (event = near_.event()).has_value(); }));
  EXPECT_EQ(event->status, Status::ok);
}

// Requests that both sides sent through shared memory get their answers there. Later ones use the network.
TEST_F(Parting, WaitsForAnswersToActiveMessages) {
  for (DirectSide* side : {&near_, &far_}) {
    ASSERT_EQ(side->engine->activate(side->port), Status::ok);
    side->engine->ports().find(side->port)->active->rule = {AccessRule::Kind::all, 0};
  }
  const auto send = [&](DirectSide& from, std::uint16_t to, ActiveMessage message) {
    if (message.kind == ActiveKind::request) message.to = {direct_place(to), kPort};
    ASSERT_EQ(from.engine->send_active(from.port, message, now_), Status::ok);
  };
  const auto next = [&](DirectSide& side) {
    Arrival* arrival = nullptr;
    EXPECT_TRUE(
        steps_until([&] { return (arrival = side.engine->ports().find(side.port)->active->next()) != nullptr; }));
    return arrival;
  };
  const auto answer = [&](DirectSide& side, const Arrival& request) {
    send(side, 0,
         {.to = request.source, .kind = ActiveKind::reply, .name = request.name, .reply_access = request.reply_access});
  };
  send(near_, 2, {.name = 1});
  send(far_, 1, {.name = 2});
  const Arrival* const at_far = next(far_);
  const Arrival* const at_near = next(near_);
  part(far_);
  for (int i = 0; i < 1000; ++i) step();
  EXPECT_NE(obstacle(far_), "") << "neither has its answer";
  // New ones do not keep the sides together.
  send(near_, 2, {.name = 3});
  const Arrival* const later = next(far_);
  EXPECT_EQ(later->name, 3u);
  answer(near_, *at_near);
  for (int i = 0; i < 1000; ++i) step();
  EXPECT_NE(obstacle(far_), "") << "one has no answer yet";
  answer(far_, *at_far);
  EXPECT_TRUE(steps_until([&] { return obstacle(near_).empty() && obstacle(far_).empty(); }));
  answer(far_, *later);
  for (int answers = 0; answers < 2; ++answers) EXPECT_EQ(next(near_)->kind, ActiveKind::reply);
  EXPECT_EQ(next(far_)->kind, ActiveKind::reply);
  PeerLoss loss;
  std::uint64_t seen = 0;
  EXPECT_FALSE(near_.engine->active().losses().next(seen, loss)) << "a peer that parts is not lost";
}

TEST_F(Parting, OfAPeerThatClosesBeforeAllIsDoneIsALoss) {
  part(far_);
  shm::Connection* there = nullptr;
  for (std::uint32_t slot = 0; slot < near_.engine->connections()->peers().size(); ++slot)
    if (near_.engine->connections()->peer(slot).state == shm::Connection::State::open)
      there = &near_.engine->connections()->peer(slot);
  ASSERT_NE(there, nullptr);
  // The far engine gets a message that says that more follows.
  std::vector<std::byte> bytes(kMost);
  iovec source{bytes.data(), kMost}, target{bytes.data(), kMost};
  OperationHandle operation;
  ASSERT_EQ(
      far_.engine->messages().post_receive(far_.port, {.memory = {&target, 1}, .size_min = 1, .cookie = 6}, operation),
      Status::ok);
  ASSERT_EQ(near_.engine->messages().send(
                near_.port, {.to = {direct_place(2), kPort}, .part = {{&source, 1}, kMost, 5}}, operation, now_),
            Status::ok);
  there->say_farewell(shm::Farewell::parted);
  there->socket = {};
  std::optional<Completion> event;
  for (int i = 0; i < 20'000 && !event; ++i) {
    now_ += 25us;
    network_.advance(now_);
    far_.engine->progress(now_);
    event = far_.event();
  }
  ASSERT_TRUE(event);
  EXPECT_EQ(event->status, Status::refused);
}

}  // namespace
}  // namespace fairlead::engine
