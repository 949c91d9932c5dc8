// Active messages between two engines of one host.

#include <array>
#include <cstring>
#include <numeric>
#include <vector>

#include "engine/engine_pair_for_tests.hpp"

namespace fairlead::engine {
namespace {

class ActiveHost : public EnginePair {
 protected:
  static constexpr std::uint64_t kAccess = 42;

  void SetUp() override {
    EnginePair::SetUp();
    for (DirectSide* side : {&near_, &far_}) {
      ASSERT_EQ(side->engine->activate(side->port), Status::ok);
      active(*side).rule = {AccessRule::Kind::equal, kAccess};
    }
    std::iota(bytes_.begin(), bytes_.end(), std::uint8_t{1});
    // The first message resolves the peer's address.
    ASSERT_EQ(send(near_, far_, request(8, 0)), Status::ok);
    pass();
    release(far_, arrival(far_));
  }
  static ActivePort& active(DirectSide& side) { return *side.engine->ports().find(side.port)->active; }
  ActiveMessage request(std::uint64_t length, std::uint16_t head) const {
    return {.word = 7, .head = head, .access = kAccess, .name = 0x1'0000'0005, .length = length};
  }
  Status send(DirectSide& from, DirectSide& to, ActiveMessage message) {
    pieces_ = {{{bytes_.data(), message.head},
                {bytes_.data() + message.head, static_cast<std::size_t>(message.length) - message.head}}};
    message.memory = pieces_;
    message.to = {to.engine->address(), kPort};
    Conversation conversation;
    return from.engine->send_active(from.port, message, now_, &conversation);
  }
  Arrival* arrival(DirectSide& side) { return active(side).next(); }
  static void release(DirectSide& side, Arrival* arrival) {
    ASSERT_NE(arrival, nullptr);
    active(side).release(*arrival);
  }
  /// Expects that the request just sent is refused with this status.
  void expect_returned(Status status) {
    for (int step = 0; step < 4; ++step) pass();
    if (far_.engine->ports().find(far_.port) != nullptr) {
      EXPECT_EQ(arrival(far_), nullptr);
    }
    Arrival* const back = arrival(near_);
    ASSERT_NE(back, nullptr);
    EXPECT_EQ(back->kind, ActiveKind::returned);
    EXPECT_EQ(back->status, status);
    EXPECT_EQ(back->name, 0x1'0000'0005u);
    release(near_, back);
  }

  std::vector<std::uint8_t> bytes_ = std::vector<std::uint8_t>(100'000);
  std::array<iovec, 2> pieces_{};
};

TEST_F(ActiveHost, RequestsAndRepliesGoThroughSharedMemory) {
  const std::uint64_t sent = near_.counter("shm.messages_sent"), answered = far_.counter("shm.messages_sent");
  std::uint64_t rounds = 0;
  for (const std::uint64_t length : {0u, 8u, 24u, 25u, 100u, 500u, 768u}) {
    for (const std::uint16_t head : std::initializer_list<std::uint16_t>{0, 8, 24}) {
      if (head > length) continue;
      ++rounds;
      ASSERT_EQ(send(near_, far_, request(length, head)), Status::ok);
      pass();
      Arrival* const got = arrival(far_);
      ASSERT_NE(got, nullptr);
      EXPECT_EQ(got->kind, ActiveKind::request);
      EXPECT_EQ(got->status, Status::ok);
      EXPECT_EQ(got->word, 7);
      EXPECT_EQ(got->name, 0x1'0000'0005u);
      EXPECT_EQ(got->access, kAccess);
      EXPECT_EQ(got->source, (RemotePort{near_.engine->address(), kPort}));
      ASSERT_EQ(got->head, head);
      ASSERT_EQ(got->data_length, length - head);
      EXPECT_FALSE(got->is_placed);
      EXPECT_EQ(std::memcmp(got->head_bytes, bytes_.data(), head), 0);
      EXPECT_EQ(std::memcmp(got->data, bytes_.data() + head, length - head), 0);
      ActiveMessage reply = request(length, head);
      reply.kind = ActiveKind::reply;
      reply.access = 0;
      reply.reply_access = got->reply_access;
      ASSERT_EQ(send(far_, near_, reply), Status::ok);
      release(far_, got);
      pass();
      Arrival* const back = arrival(near_);
      ASSERT_NE(back, nullptr);
      EXPECT_EQ(back->kind, ActiveKind::reply);
      EXPECT_EQ(back->data_length, length - head);
      release(near_, back);
    }
  }
  EXPECT_EQ(near_.counter("shm.messages_sent"), sent + rounds);
  EXPECT_EQ(far_.counter("shm.messages_sent"), answered + rounds);
}

// Regression: no outcome was awaited, so the sender did not check how far the peer had read. The peer's progress then
// counted as news for ever, and the engine never slept.
TEST_F(ActiveHost, TheSenderSleepsWhenThePeerHasRead) {
  ASSERT_EQ(send(near_, far_, request(8, 0)), Status::ok);
  for (int step = 0; step < 3; ++step) pass();
  release(far_, arrival(far_));
  ASSERT_TRUE(far_.engine->arm());  // also reports how far it has read
  bool sleeps = false;
  for (int tried = 0; tried < 4 && !sleeps; ++tried) {
    pass(false);
    sleeps = near_.engine->arm();
  }
  EXPECT_TRUE(sleeps);
}

// A message that waits for room in the ring needs passes of its sender.
TEST_F(ActiveHost, TheSenderStaysAwakeWhenTheReaderHasMadeRoom) {
  std::vector<std::byte> bytes(1 << 20, std::byte{1}), inbox(1 << 20);
  const iovec from{bytes.data(), bytes.size()}, to{inbox.data(), inbox.size()};
  OperationHandle operation;
  ASSERT_EQ(far_.engine->messages().post_receive(far_.port, {.memory = {&to, 1}, .size_min = 1}, operation),
            Status::ok);
  ASSERT_EQ(
      near_.engine->messages().send(
          near_.port, {.to = {far_.engine->address(), kPort}, .part = {{&from, 1}, bytes.size()}}, operation, now_),
      Status::ok);
  unsigned times = 0;
  for (int step = 0; step < 1000 && !far_.engine->ports().find(far_.port)->has_news(); ++step) {
    far_.engine->progress(now_ += 25us);
    far_.engine->arm();  // also reports how far it has read
    if (near_.engine->arm()) break;
    near_.engine->progress(now_);
    ++times;
  }
  EXPECT_GT(times, 10U) << "it sleeps though there is room again";
  EXPECT_EQ(next(far_)->status, Status::ok);
  EXPECT_EQ(inbox, bytes);
}

TEST_F(ActiveHost, WhatIsRefusedIsAnsweredAsEver) {
  const std::uint64_t received = far_.counter("engine.active.received");
  ActiveMessage message = request(8, 0);
  message.access = kAccess + 1;
  ASSERT_EQ(send(near_, far_, message), Status::ok);
  expect_returned(Status::not_permitted);
  message = request(8, 0);
  message.is_placed = true;  // but the target has no segment
  ASSERT_EQ(send(near_, far_, message), Status::ok);
  expect_returned(Status::invalid);
  message = request(8, 16);
  message.length = 16;
  ASSERT_EQ(send(near_, far_, message), Status::ok);
  pass();
  release(far_, arrival(far_));
  EXPECT_EQ(far_.counter("engine.active.received"), received + 1);
  far_.engine->cancel_all(far_.port, now_);
  far_.engine->free_port(far_.port);
  ASSERT_EQ(send(near_, far_, request(8, 0)), Status::ok);
  expect_returned(Status::stale);
}

TEST_F(ActiveHost, RefusesWhatMakesNoSense) {
  EXPECT_EQ(send(near_, far_, {.head = 4, .access = kAccess, .length = 8}), Status::invalid);
  EXPECT_EQ(send(near_, far_, {.head = kActiveHeadMax + 8, .access = kAccess, .length = 200}), Status::invalid);
  const iovec piece{bytes_.data(), 8};
  const std::array<iovec, 2> pieces{piece, {nullptr, 0}};
  Conversation conversation;
  const ActiveMessage message{.to = {far_.engine->address(), kPort}, .access = kAccess, .memory = pieces, .length = 9};
  EXPECT_EQ(near_.engine->send_active(near_.port, message, now_, &conversation), Status::invalid);
}

class ActiveHostBound : public ActiveHost, public ::testing::WithParamInterface<bool> {};

// Takes all arrivals at the end, or each at once, when it is the last in the queue. Releases all at the end.
TEST_P(ActiveHostBound, HoldsAndGoesOn) {
  const std::uint64_t most = near_.engine->options().get(Option::active_messages_max);
  std::vector<Arrival*> arrivals;
  std::uint64_t returned = 0;
  for (std::uint64_t sent = 0; sent < most + 10; ++sent) {
    ASSERT_EQ(send(near_, far_, request(8, 0)), Status::ok);
    pass();
    pass();
    if (Arrival* const got = GetParam() ? arrival(far_) : nullptr) arrivals.push_back(got);
    if (Arrival* back = arrival(near_)) {
      EXPECT_EQ(back->kind, ActiveKind::returned);
      EXPECT_EQ(back->status, Status::again);
      release(near_, back);
      ++returned;
    }
  }
  while (Arrival* got = arrival(far_)) arrivals.push_back(got);
  EXPECT_EQ(arrivals.size() + returned, most + 10);
  EXPECT_GT(returned, 0u);
  for (Arrival* got : arrivals) release(far_, got);
  ASSERT_EQ(send(near_, far_, request(8, 0)), Status::ok);
  pass();
  EXPECT_EQ(arrival(near_), nullptr);
  release(far_, arrival(far_));
}
INSTANTIATE_TEST_SUITE_P(Taken, ActiveHostBound, ::testing::Bool());

// A reply without the requester's secret is refused.
TEST_F(ActiveHost, TakesNoReplyThatWasNotAskedFor) {
  shm::Connection& to = near_.engine->connections()->peer(near_.engine->connections()->find(direct_place(2)));
  const std::uint64_t refused = far_.counter("engine.active.refused");
  constexpr std::size_t kBytes = wire::shm_head_bytes(wire::ShmKind::tagged);
  std::byte* const body = to.writer.reserve(kBytes);
  ASSERT_NE(body, nullptr);
  wire::encode_shm(body, wire::ShmKind::tagged,
                   {.operation = wire::Operation::active_reply,
                    .source_port = kPort,
                    .target_port = kPort,
                    .key = std::uint64_t{active(far_).secret()} + 1,
                    .cookie = 5},
                   0);
  to.writer.publish(kBytes, to.reader.read());
  to.alert();
  pass();
  EXPECT_EQ(arrival(far_), nullptr);
  EXPECT_EQ(far_.counter("engine.active.refused"), refused + 1);
}

}  // namespace
}  // namespace fairlead::engine
