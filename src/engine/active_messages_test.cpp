// Active messages between two engines on virtual time: contents, refusals with their causes, secrets, limits, losses.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.hpp"
#include "path/sim_network.hpp"

namespace fairlead::engine {
namespace {

using namespace std::chrono_literals;

base::SocketAddress active_host(std::uint8_t number) {
  return *base::SocketAddress::from_ip("10.0.0." + std::to_string(number), 20480);
}

struct ActiveSide {
  std::unique_ptr<Engine> engine;
  PortHandle port;
  std::uint32_t number = 0;
  RemotePort remote() const { return {engine->address(), number}; }
  ActivePort& active() { return *engine->ports().find(port)->active; }
};

class ActiveMessages : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(options_.set(Option::active_memory_max, 1 << 20));
    ASSERT_TRUE(options_.set(Option::active_messages_max, 128));
    for (std::uint8_t i = 0; i < 2; ++i) {
      ActiveSide& side = sides_[i];
      auto path = network_.attach(active_host(i));
      ASSERT_TRUE(path) << path.error().message;
      side.engine = std::make_unique<Engine>(std::move(*path), active_host(i), options_, 100 + i, 7919 + i);
      side.number = 0x410000U + i;
      auto port = side.engine->ports().open(side.number);
      ASSERT_TRUE(port) << port.error().message;
      side.port = *port;
      ASSERT_EQ(side.engine->ports().find(side.port)->events->reserve(1000), Status::ok);
      ASSERT_EQ(side.engine->activate(side.port), Status::ok);
      side.active().rule = {AccessRule::Kind::equal, 42};
    }
  }

  void run(base::Duration span) {
    const base::Instant end = now_ + span;
    for (int steps = 0; steps < 1'000'000; ++steps) {
      bool any = false;
      for (ActiveSide& side : sides_) any |= side.engine->progress(now_);
      if (any) continue;
      base::Instant next = network_.next_event();
      for (ActiveSide& side : sides_) next = std::min(next, side.engine->next_deadline());
      if (next > end) break;
      now_ = std::max(next, now_ + 1ns);
      network_.advance(now_);
    }
    now_ = std::max(now_, end);
    network_.advance(now_);
  }

  // Sends a request from a to `to`. The first `message.head` bytes are the head. The bytes live until the test ends.
  Status request(const RemotePort& to, std::vector<std::byte> bytes, ActiveMessage message = {}) {
    sent_.push_back(std::make_unique<Sent>());
    sent_.back()->bytes = std::move(bytes);
    sent_.back()->piece = {sent_.back()->bytes.data(), sent_.back()->bytes.size()};
    message.to = to;
    if (message.access == 0) message.access = 42;
    message.memory = {&sent_.back()->piece, 1};
    message.length = sent_.back()->bytes.size();
    return a().engine->send_active(a().port, message, now_, &conversation_);
  }

  ActiveSide& a() { return sides_[0]; }
  ActiveSide& b() { return sides_[1]; }

  struct Sent {
    std::vector<std::byte> bytes;
    iovec piece;
  };
  path::SimNetwork network_{1};
  EngineOptions options_;
  base::Instant now_{1s};
  std::array<ActiveSide, 2> sides_;
  std::vector<std::unique_ptr<Sent>> sent_;
  Conversation conversation_;  // of the last request
};

std::vector<std::byte> bytes_of(std::size_t size, unsigned salt = 1) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>((i * 131 + salt) >> 3);
  return bytes;
}

bool holds(const std::byte* at, std::span<const std::byte> bytes) {
  return std::equal(bytes.begin(), bytes.end(), at);
}

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

TEST_F(ActiveMessages, OnlyThoseWhoGotARequestCanReply) {
  ASSERT_EQ(request(b().remote(), bytes_of(8), {.name = 7}), Status::ok);
  run(50ms);
  Arrival* arrival = b().active().next();
  ASSERT_NE(arrival, nullptr);
  ActiveMessage reply{
      .to = arrival->source, .kind = ActiveKind::reply, .name = 7, .reply_access = arrival->reply_access + 1};
  ASSERT_EQ(b().engine->send_active(b().port, reply, now_), Status::ok);
  run(50ms);
  EXPECT_EQ(a().active().next(), nullptr);
  reply.reply_access = arrival->reply_access;
  ASSERT_EQ(b().engine->send_active(b().port, reply, now_), Status::ok);
  run(50ms);
  Arrival* answer = a().active().next();
  ASSERT_NE(answer, nullptr);
  EXPECT_EQ(answer->kind, ActiveKind::reply);
  EXPECT_EQ(answer->name, 7u);
}

// A peer that got no request cannot know the secret, so its `returned` and `rejected` messages are dropped.
TEST_F(ActiveMessages, ARefusalNeedsTheSecretOfWhatItRefuses) {
  std::vector<std::byte> memory(1000);
  b().active().segment = {memory.data(), memory.size()};
  const auto before = memory;
  const std::uint64_t secret = b().active().secret();
  for (const ActiveKind kind : {ActiveKind::returned, ActiveKind::rejected}) {
    for (const bool is_placed : {false, true}) {
      ASSERT_EQ(request(b().remote(), bytes_of(100),
                        {.kind = kind, .is_placed = is_placed, .reply_access = secret ^ 1, .offset = 8}),
                Status::ok);
      run(50ms);
      EXPECT_EQ(b().active().next(), nullptr);
    }
  }
  EXPECT_EQ(memory, before);
}

// A peer that knows the secret may refuse, but its refusal must carry no bytes.
TEST_F(ActiveMessages, ARefusalCarriesNothing) {
  std::vector<std::byte> memory(1000);
  b().active().segment = {memory.data(), memory.size()};
  const auto before = memory;
  const std::uint64_t secret = b().active().secret();
  for (const ActiveKind kind : {ActiveKind::returned, ActiveKind::rejected}) {
    for (const std::size_t size : {0, 100, 100'000}) {
      for (const bool is_placed : {false, true}) {
        b().active().requests.open(0, a().remote());
        ASSERT_EQ(request(b().remote(), bytes_of(size),
                          {.kind = kind, .is_placed = is_placed, .reply_access = secret, .offset = 8}),
                  Status::ok);
        run(50ms);
        Arrival* arrival = b().active().next();
        ASSERT_EQ(arrival != nullptr, size == 0);
        if (arrival != nullptr) b().active().release(*arrival);
      }
    }
  }
  EXPECT_EQ(memory, before);
}

// A peer that got a request knows the secret of the port. It may only answer that request, and only once.
TEST_F(ActiveMessages, AnAnswerIsLetInOnceFromWhomWasAskedAndOnlyIfSomethingWas) {
  std::vector<std::byte> memory(200'000);
  a().active().segment = {memory.data(), memory.size()};
  const auto before = memory;
  ASSERT_EQ(request(b().remote(), bytes_of(8), {.name = 1ULL << 32 | 7}), Status::ok);
  run(50ms);
  Arrival* asked = b().active().next();
  ASSERT_NE(asked, nullptr);
  const auto data = bytes_of(100'000);
  const iovec piece{const_cast<std::byte*>(data.data()), data.size()};
  const auto answer = [&](ActiveKind kind, std::uint64_t name, std::uint64_t length, PortHandle from) {
    const bool has_data = kind == ActiveKind::reply;
    ASSERT_EQ(b().engine->send_active(from,
                                      {.to = asked->source,
                                       .kind = kind,
                                       .is_placed = has_data,
                                       .name = name,
                                       .reply_access = asked->reply_access,
                                       .offset = 16,
                                       .memory = {&piece, has_data ? 1U : 0U},
                                       .length = has_data ? length : 0,
                                       .cookie = 1},
                                      now_),
              Status::ok);
    run(50ms);
  };
  auto other = b().engine->ports().open(0x410077);
  ASSERT_TRUE(other);
  ASSERT_EQ(b().engine->activate(*other), Status::ok);
  ASSERT_EQ(b().engine->ports().find(*other)->events->reserve(1000), Status::ok);
  const std::uint64_t name = asked->name;
  for (const std::uint64_t length : {500ULL, 100'000ULL}) {
    for (const ActiveKind kind : {ActiveKind::reply, ActiveKind::returned}) {
      answer(kind, name + 1, length, b().port);           // no request has this name
      answer(kind, name ^ 1ULL << 32, length, b().port);  // nor this generation of it
      answer(kind, name, length, *other);                 // another port got the request
    }
  }
  EXPECT_EQ(a().active().next(), nullptr);
  EXPECT_EQ(memory, before);
  answer(ActiveKind::reply, name, 100'000, b().port);
  Arrival* first = a().active().next();
  ASSERT_NE(first, nullptr);
  EXPECT_TRUE(holds(memory.data() + 16, data));
  a().active().release(*first);
  memory = before;
  for (const ActiveKind kind : {ActiveKind::reply, ActiveKind::returned}) answer(kind, name, 100'000, b().port);
  EXPECT_EQ(a().active().next(), nullptr) << "it has been answered";
  EXPECT_EQ(memory, before);
}

// The AM layer has stopped waiting. Nothing more is written, even of an answer that has arrived in part.
TEST_F(ActiveMessages, NothingIsWrittenByTheAnswerToARequestThatIsForgotten) {
  std::vector<std::byte> memory(900'000);
  a().active().segment = {memory.data(), memory.size()};
  for (const bool has_begun : {false, true}) {
    ASSERT_EQ(request(b().remote(), bytes_of(8), {.name = 7}), Status::ok);
    run(50ms);
    Arrival* asked = b().active().next();
    ASSERT_NE(asked, nullptr);
    const auto data = bytes_of(900'000);
    const iovec piece{const_cast<std::byte*>(data.data()), data.size()};
    ASSERT_EQ(b().engine->send_active(b().port,
                                      {.to = asked->source,
                                       .kind = ActiveKind::reply,
                                       .is_placed = true,
                                       .name = 7,
                                       .reply_access = asked->reply_access,
                                       .memory = {&piece, 1},
                                       .length = data.size(),
                                       .cookie = 1},
                                      now_),
              Status::ok);
    for (int i = 0; has_begun && i < 1000 && a().engine->use().placements == 0; ++i) run(10us);
    ASSERT_EQ(a().engine->use().placements, has_begun ? 1u : 0u);
    a().engine->active().forget_request(a().port, 7);
    Arrival* half = a().active().next();
    EXPECT_EQ(half != nullptr, has_begun);
    if (half != nullptr) {
      EXPECT_EQ(half->status, Status::timed_out);
      a().active().release(*half);
    }
    const auto before = memory;
    run(1s);
    EXPECT_EQ(memory, before);
    EXPECT_EQ(a().active().next(), nullptr);
    EXPECT_EQ(a().engine->use().placements, 0u);
    b().active().release(*asked);
  }
}

TEST_F(ActiveMessages, WhoeverGuessesIsPutOut) {
  const auto counter = [&](std::string_view name) {
    for (const observe::CounterFact& fact : b().engine->facts().counters)
      if (fact.name == name) return fact.value;
    ADD_FAILURE() << "no counter " << name;
    return std::uint64_t{0};
  };
  const auto guess = [&](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      request(b().remote(), {}, {.kind = ActiveKind::reply, .reply_access = b().active().secret() + 1 + i});
      if (i % 64 == 0) run(100us);
    }
    run(10ms);
  };
  guess(4000);  // so many honest answers may go to an endpoint that has just closed
  EXPECT_EQ(counter("engine.wrong_secrets.answers"), 4000u);
  EXPECT_EQ(counter("engine.expelled.guesses"), 0u);
  guess(200);
  EXPECT_GE(counter("engine.expelled.guesses"), 1u);
  EXPECT_NE(b().engine->describe_peer(active_host(0), now_).find("wrong keys"), std::string::npos);
  run(10s);
  EXPECT_EQ(b().active().next(), nullptr);
  ASSERT_EQ(request(b().remote(), bytes_of(8), {.name = 7}), Status::ok);
  run(50ms);
  EXPECT_NE(b().active().next(), nullptr) << "it may come back";
}

TEST_F(ActiveMessages, AReplyThatIsRejectedIsToldToItsSender) {
  ASSERT_EQ(request(b().remote(), bytes_of(8), {.name = 7}), Status::ok);
  run(50ms);
  Arrival* arrival = b().active().next();
  ASSERT_NE(arrival, nullptr);
  // The requester has no segment.
  const ActiveMessage reply{.to = arrival->source,
                            .kind = ActiveKind::reply,
                            .is_placed = true,
                            .word = 5,
                            .name = 7,
                            .reply_access = arrival->reply_access};
  ASSERT_EQ(b().engine->send_active(b().port, reply, now_), Status::ok);
  run(50ms);
  Arrival* answer = a().active().next();
  ASSERT_NE(answer, nullptr);
  EXPECT_EQ(answer->status, Status::invalid);
  // What the AM layer then sends (EndpointState::refuse).
  const ActiveMessage rejection{.to = answer->source,
                                .kind = ActiveKind::rejected,
                                .status = Status::invalid,
                                .word = answer->word,
                                .name = 7,
                                .reply_access = answer->reply_access};
  ASSERT_EQ(a().engine->send_active(a().port, rejection, now_), Status::ok);
  run(50ms);
  Arrival* rejected = b().active().next();
  ASSERT_NE(rejected, nullptr);
  EXPECT_EQ(rejected->kind, ActiveKind::rejected);
  EXPECT_EQ(rejected->status, Status::invalid);
  EXPECT_EQ(rejected->word, 5);
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
  EXPECT_FALSE(b().engine->active().losses().next(seen, loss) && loss.engine != active_host(0));
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

}  // namespace
}  // namespace fairlead::engine
