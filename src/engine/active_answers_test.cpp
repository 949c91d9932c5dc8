// Which replies and refusals of active messages are believed, and what becomes of whoever guesses.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "engine/active_sides_for_tests.hpp"

namespace fairlead::engine::active_sides {
namespace {

using namespace std::chrono_literals;

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

}  // namespace
}  // namespace fairlead::engine::active_sides
