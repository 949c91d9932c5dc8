// Active messages between two engines on virtual time: contents, refusals with their causes, limits, losses.

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "engine/active_sides_for_tests.hpp"

namespace fairlead::engine::active_sides {
namespace {

using namespace std::chrono_literals;

TEST_F(ActiveMessages, ComeWithHeadDataAndNames) {
  for (const std::size_t size : {0, 16, 100, 864, 865, 5000, 65000, 300'000}) {
    const auto bytes = bytes_of(size);
    const auto head = static_cast<std::uint16_t>(std::min<std::size_t>(size, 16));
    ASSERT_EQ(request(b().remote(), bytes, {.word = 0x1234, .head = head, .name = 99}), Status::ok);
    run(50ms);
    ASSERT_TRUE(b().active().has_ready()) << size;
    Arrival* arrival = b().active().next();
    ASSERT_NE(arrival, nullptr);
    EXPECT_EQ(arrival->status, Status::ok);
    EXPECT_EQ(arrival->source, a().remote());
    EXPECT_EQ(arrival->word, 0x1234);
    EXPECT_EQ(arrival->name, 99u);
    ASSERT_EQ(arrival->head, head);
    ASSERT_EQ(arrival->data_length, size - head);
    EXPECT_TRUE(holds(arrival->head_bytes, std::span(bytes).first(head)));
    EXPECT_TRUE(holds(arrival->data, std::span(bytes).subspan(head)));
    b().active().release(*arrival);
    EXPECT_EQ(b().active().next(), nullptr);
  }
  EXPECT_EQ(a().engine->use().operations, 0u);
  EXPECT_EQ(b().engine->use().placements, 0u);
}

TEST_F(ActiveMessages, PlacedDataGoesIntoTheSegmentOnly) {
  std::vector<std::byte> memory(100'000);
  b().active().segment = {memory.data() + 1000, 90'000};
  const auto bytes = bytes_of(80'008);
  ASSERT_EQ(request(b().remote(), bytes, {.is_placed = true, .head = 8, .offset = 10'000}), Status::ok);
  run(50ms);
  Arrival* arrival = b().active().next();
  ASSERT_NE(arrival, nullptr);
  EXPECT_EQ(arrival->data, memory.data() + 11'000);
  EXPECT_TRUE(holds(arrival->data, std::span(bytes).subspan(8)));
  EXPECT_TRUE(holds(arrival->head_bytes, std::span(bytes).first(8)));
  b().active().release(*arrival);

  const auto before = memory;
  ASSERT_EQ(request(b().remote(), bytes_of(80'000), {.is_placed = true, .name = 1, .offset = 10'001}), Status::ok);
  ASSERT_EQ(request(b().remote(), bytes_of(1), {.is_placed = true, .name = 2, .offset = ~0ULL}), Status::ok);
  run(50ms);
  EXPECT_EQ(b().active().next(), nullptr);
  EXPECT_EQ(memory, before);
  for (int i = 0; i < 2; ++i) {
    Arrival* returned = a().active().next();
    ASSERT_NE(returned, nullptr);
    EXPECT_EQ(returned->kind, ActiveKind::returned);
    EXPECT_EQ(returned->status, Status::too_big);
    a().active().release(*returned);
  }
}

// The segment changes between two chunks. No further byte is written to the old segment or to the new one.
TEST_F(ActiveMessages, ASegmentThatIsTakenAwayIsWrittenToNoMore) {
  std::vector<std::byte> memory(400'000), other(400'000);
  for (const Segment& next : {Segment{}, Segment{memory.data(), 100'000}, Segment{other.data(), other.size()}}) {
    std::ranges::fill(memory, std::byte{0});
    b().active().segment = {memory.data(), memory.size()};
    ASSERT_EQ(request(b().remote(), std::vector<std::byte>(300'000, std::byte{7}), {.is_placed = true, .head = 8}),
              Status::ok);
    const auto written = [&] { return std::ranges::count(memory, std::byte{7}); };
    for (int steps = 0; steps < 100'000 && written() == 0; ++steps) run(1us);
    const auto before = written();
    ASSERT_GT(before, 0);
    ASSERT_LT(before, 300'000 - 8);
    b().active().segment = next;
    run(50ms);
    Arrival* arrival = b().active().next();
    ASSERT_NE(arrival, nullptr);
    EXPECT_EQ(arrival->status, next.length == 100'000 ? Status::too_big : Status::invalid);
    b().active().release(*arrival);
    EXPECT_EQ(written(), before);
    EXPECT_EQ(std::ranges::count(other, std::byte{7}), 0);
  }
}

TEST_F(ActiveMessages, WhatMayNotComeInIsReturnedWithItsReason) {
  const auto expect_returned = [&](Status status, std::uint64_t name) {
    run(50ms);
    Arrival* returned = a().active().next();
    ASSERT_NE(returned, nullptr) << to_string(status);
    EXPECT_EQ(returned->kind, ActiveKind::returned);
    EXPECT_EQ(returned->status, status);
    EXPECT_EQ(returned->name, name);
    a().active().release(*returned);
    EXPECT_EQ(b().active().next(), nullptr);
  };
  ASSERT_EQ(request(b().remote(), bytes_of(8), {.access = 41, .name = 1}), Status::ok);
  expect_returned(Status::not_permitted, 1);
  ASSERT_EQ(request({b().engine->address(), 77}, bytes_of(8), {.name = 2}), Status::ok);
  expect_returned(Status::stale, 2);
  ASSERT_EQ(request(b().remote(), bytes_of(8), {.is_placed = true, .name = 3}), Status::ok);
  expect_returned(Status::invalid, 3);
  b().active().rule = {};
  ASSERT_EQ(request(b().remote(), bytes_of(70'000), {.name = 4}), Status::ok);
  expect_returned(Status::not_permitted, 4);
  b().active().rule = {AccessRule::Kind::all, 0};
  ASSERT_EQ(request(b().remote(), bytes_of(8), {.access = 12345}), Status::ok);
  run(50ms);
  EXPECT_NE(b().active().next(), nullptr);
}

TEST_F(ActiveMessages, RequestsBeyondTheBoundsAreReturnedAgainAndMemoryGoesRound) {
  int returned = 0, taken = 0;
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 40; ++i) {
      ASSERT_EQ(request(b().remote(), bytes_of(65'000), {.name = 1}), Status::ok);
      run(5ms);
    }
    while (Arrival* arrival = a().active().next()) {
      EXPECT_EQ(arrival->status, Status::again);
      ++returned;
      a().active().release(*arrival);
    }
    while (Arrival* arrival = b().active().next()) {
      ++taken;
      b().active().release(*arrival);
    }
  }
  EXPECT_EQ(taken + returned, 160);
  // 1 MiB in buffers of 64 KiB. The firewall elements of the two queues keep their buffers.
  EXPECT_GE(taken, 4 * 14);
  EXPECT_LE(taken, 4 * 16);
}

TEST_F(ActiveMessages, ALongOneHoldsUpNoShortOne) {
  ASSERT_EQ(request(b().remote(), bytes_of(5'000'000), {.name = 1}), Status::ok);
  ASSERT_EQ(request(b().remote(), bytes_of(8), {.name = 2}), Status::ok);
  // The first one exceeds the memory limit, so it is returned, or it arrives after the second.
  run(50ms);
  Arrival* first = b().active().next();
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->name, 2u);
}

TEST_F(ActiveMessages, WithinOneEngineNothingTravels) {
  std::vector<std::byte> memory(1000);
  a().active().segment = {memory.data(), memory.size()};
  const auto bytes = bytes_of(908);
  ASSERT_EQ(request(a().remote(), bytes, {.is_placed = true, .head = 8, .offset = 100}), Status::ok);
  Arrival* arrival = a().active().next();
  ASSERT_NE(arrival, nullptr);
  EXPECT_TRUE(holds(memory.data() + 100, std::span(bytes).subspan(8)));
  ASSERT_EQ(request(a().remote(), bytes, {.access = 1}), Status::ok);
  Arrival* returned = a().active().next();
  ASSERT_NE(returned, nullptr);
  EXPECT_EQ(returned->status, Status::not_permitted);
}

TEST_F(ActiveMessages, ALostPeerIsToldOnceAndItsHalfMessagesEnd) {
  ASSERT_EQ(request(b().remote(), bytes_of(900'000), {.name = 1}), Status::ok);
  a().engine->progress(now_);
  for (int i = 0; i < 20 && b().engine->use().placements == 0; ++i) run(10us);
  ASSERT_EQ(b().engine->use().placements, 1u);
  sides_[0].engine.reset();
  auto path = network_.attach(active_host(0));
  ASSERT_TRUE(path);
  sides_[0].engine = std::make_unique<Engine>(std::move(*path), active_host(0), options_, 555, 556);
  run(20s);
  EXPECT_EQ(b().engine->use().placements, 0u);
  Arrival* half = b().active().next();
  ASSERT_NE(half, nullptr);
  EXPECT_NE(half->status, Status::ok);
  std::uint64_t seen = 0;
  PeerLoss loss;
  ASSERT_TRUE(b().engine->active().losses().next(seen, loss));
  EXPECT_EQ(loss.engine, active_host(0));
  EXPECT_FALSE(b().engine->active().losses().next(seen, loss)) << "once is enough";
}

// A peer restarts at the same address. The loss of the old peer does not include what the new one was sent.
TEST_F(ActiveMessages, ALossNamesTheConversationThatEnded) {
  ASSERT_EQ(request(a().remote(), bytes_of(8)), Status::ok);
  const Conversation here = conversation_;
  const RemotePort to = b().remote();
  ASSERT_EQ(request(to, bytes_of(8)), Status::ok);
  const Conversation first = conversation_;
  run(1s);
  sides_[1].engine.reset();
  auto path = network_.attach(active_host(1));
  ASSERT_TRUE(path);
  sides_[1].engine = std::make_unique<Engine>(std::move(*path), active_host(1), options_, 555, 556);
  ASSERT_EQ(request(to, bytes_of(8)), Status::ok);
  const Conversation second = conversation_;  // a does not know yet that the first one has ended
  run(20s);
  std::uint64_t seen = 0;
  PeerLoss loss;
  ASSERT_TRUE(a().engine->active().losses().next(seen, loss));
  EXPECT_EQ(loss.engine, active_host(1));
  EXPECT_TRUE(loss.ends(first));
  EXPECT_TRUE(loss.ends(second));
  EXPECT_FALSE(loss.ends(here));
  ASSERT_EQ(request(to, bytes_of(8)), Status::ok);
  EXPECT_FALSE(loss.ends(conversation_));
  EXPECT_FALSE(loss.ends({first.way + 1, 0}));  // reached by another transport or session
  run(1s);
  EXPECT_FALSE(a().engine->active().losses().next(seen, loss));
}

// Requests that were queued, that had arrived in part, or that arrive later: all are returned.
TEST_F(ActiveMessages, AClosedPortReturnsWhatItHasNotTaken) {
  ASSERT_EQ(request(b().remote(), bytes_of(8), {.name = 1}), Status::ok);
  run(50ms);
  ASSERT_TRUE(b().active().has_ready());
  ASSERT_EQ(request(b().remote(), bytes_of(900'000), {.name = 2}), Status::ok);
  for (int i = 0; i < 20 && b().engine->use().placements == 0; ++i) run(10us);
  ASSERT_EQ(b().engine->use().placements, 1u);
  b().engine->free_port(b().port);
  run(100ms);
  EXPECT_EQ(b().engine->use().placements, 0u);
  ASSERT_EQ(request(b().remote(), bytes_of(8), {.name = 3}), Status::ok);
  run(50ms);
  std::set<std::uint64_t> names;
  while (Arrival* returned = a().active().next()) {
    EXPECT_EQ(returned->kind, ActiveKind::returned);
    EXPECT_EQ(returned->status, Status::stale);
    EXPECT_TRUE(names.insert(returned->name).second) << "twice: " << returned->name;
    a().active().release(*returned);
  }
  EXPECT_EQ(names, (std::set<std::uint64_t>{1, 2, 3}));
}

// The sender of each request learns that the owner had announced its end, also after the port is closed, but not after
// another port has its number.
TEST_F(ActiveMessages, APortThatHasLeftReturnsRequestsAsCanceled) {
  const auto expect_returned = [&](std::uint64_t name, Status status) {
    run(50ms);
    Arrival* const returned = a().active().next();
    ASSERT_NE(returned, nullptr) << name;
    EXPECT_EQ(returned->kind, ActiveKind::returned);
    EXPECT_EQ(returned->status, status);
    EXPECT_EQ(returned->name, name);
    a().active().release(*returned);
  };
  ASSERT_EQ(request(b().remote(), bytes_of(8), {.name = 1}), Status::ok);
  run(50ms);
  b().engine->active().leave(b().port, Status::canceled);
  ASSERT_EQ(request(b().remote(), bytes_of(8), {.name = 2}), Status::ok);
  expect_returned(2, Status::canceled);
  b().engine->free_port(b().port);
  expect_returned(1, Status::canceled);
  ASSERT_EQ(request(b().remote(), bytes_of(8), {.name = 3}), Status::ok);
  expect_returned(3, Status::canceled);
  b().port = b().engine->ports().open(b().number).value();
  ASSERT_EQ(b().engine->activate(b().port), Status::ok);
  b().engine->free_port(b().port);
  ASSERT_EQ(request(b().remote(), bytes_of(8), {.name = 4}), Status::ok);
  expect_returned(4, Status::stale);
}

TEST_F(ActiveMessages, AReplyToAPortThatHasLeftIsNotRejected) {
  ASSERT_EQ(request(b().remote(), bytes_of(8), {.name = 1}), Status::ok);
  run(50ms);
  Arrival* const arrival = b().active().next();
  ASSERT_NE(arrival, nullptr);
  a().engine->active().leave(a().port, Status::canceled);
  a().engine->free_port(a().port);
  const ActiveMessage reply{
      .to = arrival->source, .kind = ActiveKind::reply, .name = arrival->name, .reply_access = arrival->reply_access};
  ASSERT_EQ(b().engine->send_active(b().port, reply, now_), Status::ok);
  run(50ms);
  EXPECT_FALSE(b().active().has_ready());
  EXPECT_EQ(a().engine->active().counters().late_answers, 1u);
}

TEST_F(ActiveMessages, ARequestCanBeRefusedAfterItsArrivalWasReleased) {
  ASSERT_EQ(request(b().remote(), bytes_of(8), {.name = 1}), Status::ok);
  run(50ms);
  Arrival* const arrival = b().active().next();
  ASSERT_NE(arrival, nullptr);
  const UnansweredRequest unanswered{arrival->source, arrival->name, arrival->reply_access, arrival->word};
  b().active().release(*arrival);
  b().engine->active().refuse(b().port, unanswered, Status::unreachable, now_);
  run(50ms);
  Arrival* const returned = a().active().next();
  ASSERT_NE(returned, nullptr);
  EXPECT_EQ(returned->kind, ActiveKind::returned);
  EXPECT_EQ(returned->status, Status::unreachable);
  EXPECT_EQ(returned->name, 1u);
}

}  // namespace
}  // namespace fairlead::engine::active_sides
