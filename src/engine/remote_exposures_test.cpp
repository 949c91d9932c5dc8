// Puts and gets that the initiator carries out itself in the owner's arena: the events of both ends, permissions, and
// peers that lie or end. Two engines on virtual time, with real shared memory between them.

#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <cstring>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "engine/engine_pair_for_tests.hpp"

namespace fairlead::engine {
namespace {

/// Memory that is exposed once.
struct Exposed {
  Exposed(DirectSide& side, std::span<std::byte> bytes, bool is_writable) : piece{bytes.data(), bytes.size()} {
    EXPECT_EQ(side.engine->messages().expose(
                  side.port, {.memory = {&piece, 1}, .length = bytes.size(), .is_writable = is_writable, .cookie = 77},
                  operation, key),
              Status::ok);
  }
  iovec piece;
  OperationHandle operation;
  std::uint64_t key = 0;
};

class EngineDirect : public EnginePair {
 protected:
  Status transfer(DirectSide& from, OperationKind kind, const Exposed& exposed, std::span<std::byte> memory) {
    iovec piece{memory.data(), memory.size()};
    pieces_.push_back(piece);
    OperationHandle operation;
    return from.engine->messages().transfer(from.port, kind,
                                            {.target = {direct_place(2), kPort},
                                             .target_epoch = 102,
                                             .key = exposed.key,
                                             .memory = {&pieces_.back(), 1},
                                             .length = memory.size(),
                                             .cookie = 5},
                                            operation, now_);
  }
  Status put(const Exposed& exposed, std::span<std::byte> memory) {
    return transfer(near_, OperationKind::put, exposed, memory);
  }
  /// Another engine of this host, represented by its connection only.
  std::unique_ptr<shm::Connections> guest() {
    auto connections = shm::Connections::open(direct_place(3), 103, direct_options()).value();
    EXPECT_TRUE(connections->ask(direct_place(2), {}));
    for (int step = 0; step < 10; ++step) pass(), connections->attend({});
    EXPECT_EQ(connections->peer(connections->find(direct_place(2))).state, shm::Connection::State::open);
    return connections;
  }
  onesided::PublishedExposure& shown(const Exposed& exposed) {
    return far_.tables().exposures[exposed.key % onesided::SharedTables::kExposures];
  }

  std::deque<iovec> pieces_;
};

TEST_F(EngineDirect, APutAndAGetNeedNobodyAtTheTarget) {
  std::vector<std::byte> source(100'000), copy(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i * 7 >> 3);
  for (const std::size_t size : {1, 4, 8, 63, 4096, 100'000}) {
    const auto there = far_.shared(size);
    const Exposed writable(far_, there.first(size), true), readable(far_, there.first(size), false);
    EXPECT_EQ(put(writable, std::span(source).first(size)), Status::ok);
    const auto end = near_.event();
    ASSERT_TRUE(end) << "it is done at once";
    EXPECT_EQ(end->status, Status::ok);
    EXPECT_EQ(end->length, size);
    EXPECT_EQ(std::memcmp(there.data(), source.data(), size), 0) << "nobody has run there";
    ASSERT_EQ(transfer(near_, OperationKind::get, readable, std::span(copy)), Status::ok);
    EXPECT_EQ(near_.event()->length, size) << "of memory that could hold more";
    EXPECT_EQ(std::memcmp(copy.data(), source.data(), size), 0);
    EXPECT_FALSE(far_.event());
    for (int i = 0; i < 2; ++i) {
      const auto passive = next(far_);
      ASSERT_TRUE(passive);
      EXPECT_EQ(passive->status, Status::ok);
      EXPECT_EQ(passive->length, size);
      EXPECT_EQ(passive->cookie, 77u);
      EXPECT_EQ(passive->source, (RemotePort{direct_place(1), kPort}));
      EXPECT_TRUE(passive->is_final);
    }
    far_.engine->connections()->remapped().free(there);
  }
  EXPECT_EQ(near_.counter("engine.direct.puts"), 6u);
  EXPECT_EQ(near_.counter("engine.direct.gets"), 6u);
  EXPECT_EQ(far_.engine->use().operations, 0u);
}

TEST_F(EngineDirect, WhatIsNotRightIsAskedOfTheTargetWhoSaysWhy) {
  const auto there = far_.shared(4096);
  std::vector<std::byte> mine(8192), elsewhere(4096);
  const Exposed writable(far_, there, true);
  EXPECT_EQ(put(writable, mine), Status::ok);
  EXPECT_EQ(next(near_)->status, Status::too_big);
  EXPECT_EQ(transfer(near_, OperationKind::get, writable, mine), Status::ok);
  EXPECT_EQ(next(near_)->status, Status::not_permitted);
  EXPECT_EQ(put(writable, std::span(mine).first(10)), Status::ok) << "it still serves";
  EXPECT_EQ(next(near_)->status, Status::ok);
  EXPECT_EQ(put(writable, std::span(mine).first(10)), Status::ok);
  EXPECT_EQ(next(near_)->status, Status::stale) << "once";
  EXPECT_EQ(next(far_)->length, 10u);
  const Exposed hidden(far_, elsewhere, true);
  EXPECT_EQ(put(hidden, std::span(mine).first(100)), Status::ok);
  EXPECT_EQ(next(near_)->status, Status::ok) << "through the ring";
  EXPECT_EQ(next(far_)->length, 100u);
  EXPECT_EQ(near_.counter("engine.direct.puts"), 1u);
}

TEST_F(EngineDirect, WhatIsWithdrawnIsReachedNoMore) {
  const auto there = far_.shared(4096);
  std::vector<std::byte> mine(4096, std::byte{1});
  const Exposed exposed(far_, there, true);
  EXPECT_TRUE(far_.engine->cancel(far_.port, exposed.operation, now_));
  EXPECT_EQ(far_.event()->status, Status::canceled) << "at once: nobody had claimed it";
  EXPECT_EQ(put(exposed, mine), Status::ok);
  EXPECT_EQ(next(near_)->status, Status::stale);
  EXPECT_EQ(there[0], std::byte{0});
}

TEST_F(EngineDirect, WhoeverIsAtItHoldsUpTheEndUntilItHasDoneItOrIsGone) {
  const auto there = far_.shared(4096);
  std::vector<std::byte> mine(4096);
  auto second = guest();
  shm::Connection& to = second->peer(second->find(direct_place(2)));
  const Exposed busy(far_, there, true), other(far_, there, true);
  to.enter(shm::Use::of_exposure(busy.key));
  ASSERT_TRUE(shown(busy).claim(busy.key, to.doorbell_bit + 1));  // it is copying
  EXPECT_TRUE(far_.engine->cancel(far_.port, busy.operation, now_));
  EXPECT_EQ(put(busy, mine), Status::ok);
  EXPECT_EQ(next(near_)->status, Status::stale) << "another has it";
  for (int step = 0; step < 100; ++step) pass();
  EXPECT_FALSE(far_.event());
  second.reset();
  const auto end = next(far_);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->status, Status::refused);
  EXPECT_FALSE(far_.event()) << "nobody had claimed the other one";
  EXPECT_TRUE(far_.engine->cancel(far_.port, other.operation, now_));
  EXPECT_EQ(far_.event()->status, Status::canceled);
}

TEST_F(EngineDirect, WhatWasDoneBeforeItsInitiatorLeftEndsWellThoughCancelled) {
  const auto there = far_.shared(4096);
  auto second = guest();
  shm::Connection& to = second->peer(second->find(direct_place(2)));
  const Exposed done(far_, there, true), undone(far_, there, true);
  for (const Exposed* one : {&done, &undone}) {
    to.enter(shm::Use::of_exposure(one->key));
    ASSERT_TRUE(shown(*one).claim(one->key, to.doorbell_bit + 1));
    EXPECT_TRUE(far_.engine->cancel(far_.port, one->operation, now_));
    for (int step = 0; step < 10; ++step) pass();
    EXPECT_FALSE(far_.event()) << "it is inside";
    EXPECT_EQ(shown(*one).holder.load(), 0u);
    // More records than one pass reads. Only the last one is valid.
    for (std::uint64_t key = 1; key <= 100; ++key)
      publish_record(to, {.operation = wire::Operation::carried_out,
                          .source_port = 9,
                          .target_port = kPort,
                          .key = (one == &done && key == 100 ? one->key : key) ^ 102U,
                          .a = 4096});
    to.leave();
    const auto end = next(far_);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->status, one == &done ? Status::ok : Status::canceled);
  }
}

// All peers can write to the table. Only the page shared with one peer proves that this peer uses an exposure.
TEST_F(EngineDirect, WhoeverTheTableOnlyNamesHoldsUpNothing) {
  const auto there = far_.shared(4096);
  for (const std::uint64_t name : {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{5000}, ~std::uint64_t{0}}) {
    const Exposed exposed(far_, there, true);
    shown(exposed).holder.store(name);
    EXPECT_TRUE(far_.engine->cancel(far_.port, exposed.operation, now_));
    pass();
    const auto end = far_.event();
    ASSERT_TRUE(end) << name;
    EXPECT_EQ(end->status, Status::canceled);
  }
}

TEST_F(EngineDirect, WhatFindsNoPlaceInTheTableGoesThroughTheRing) {
  const auto there = far_.shared(4096);
  std::vector<std::byte> mine(10);
  std::vector<std::unique_ptr<Exposed>> all;
  for (std::uint32_t i = 0; i <= onesided::SharedTables::kExposures; ++i)
    all.push_back(std::make_unique<Exposed>(far_, there, true));
  EXPECT_GE(far_.counter("engine.direct.crowded"), 1u);
  for (const std::size_t one : {std::size_t{0}, all.size() - 1}) {
    EXPECT_EQ(put(*all[one], mine), Status::ok);
    EXPECT_EQ(next(near_)->status, Status::ok);
    EXPECT_EQ(next(far_)->status, Status::ok);
  }
}

TEST_F(EngineDirect, LiesInTheTablesHurtNobodyButTheLiar) {
  std::mt19937_64 random(5);
  std::vector<std::byte> mine(20'000);
  const auto there = far_.shared(20'000);
  const auto wild = [&]() -> std::uint64_t {
    const std::uint64_t close = random() % 5 - 2;
    const std::array<std::uint64_t, 6> choices{
        random(), close, sizeof(onesided::SharedTables) + kShown + close, close - 4096, 1ULL << 63, kShown / 2};
    return choices[random() % choices.size()];
  };
  onesided::PublishCount lies;
  for (int step = 0; step < 2000; ++step) {
    const bool is_writable = random() % 2 == 0;
    const Exposed exposed(far_, there.first(1 + random() % 20'000), is_writable);
    onesided::PublishedExposure& place = shown(exposed);
    onesided::SharedExposure lie;
    ASSERT_TRUE(place.record.read(lie));
    if (random() % 4 != 0) lie.offset = wild();
    if (random() % 4 != 0) lie.length = wild();
    if (random() % 4 == 0) lie.is_writable = static_cast<std::uint32_t>(wild());
    place.record.publish(lie, lies);
    if (random() % 4 == 0) place.holder.store(wild());
    const auto kind = random() % 2 == 0 ? OperationKind::put : OperationKind::get;
    ASSERT_EQ(transfer(near_, kind, exposed, std::span(mine).first(1 + random() % mine.size())), Status::ok);
    pieces_.clear();
    ASSERT_TRUE(next(near_)) << "it ends";
    pass();
    far_.engine->cancel(far_.port, exposed.operation, now_);
    ASSERT_TRUE(next(far_)) << "the exposure ends, too";
    ASSERT_EQ(far_.engine->use().operations, 0u);
  }
}

// A connected peer reports transfers without a valid key, or with impossible values.
TEST_F(EngineDirect, WhoSaysThatItHasDoneWhatItCannotIsNotBelieved) {
  std::mt19937_64 random(6);
  const auto there = far_.shared(4096);
  const Exposed exposed(far_, there, true);
  const auto liar = guest();
  shm::Connection& to = liar->peer(liar->find(direct_place(2)));
  shm::Connections& far = *far_.engine->connections();
  const auto say = [&](std::uint64_t key, std::uint64_t length, std::uint32_t port = kPort) {
    write_record(to, {.operation = wire::Operation::carried_out,
                      .source_port = 9,
                      .target_port = port,
                      .key = key ^ 102U,
                      .a = length});
  };
  for (int step = 0; step < 300; ++step) {
    say(random() >> random() % 64, random() % 5000);
    say(exposed.key, 4097 + random());
    say(exposed.key, 4096, 5);
  }
  bool& has_arena = far.peer(far.find(direct_place(3))).sees_ours;
  ASSERT_TRUE(std::exchange(has_arena, false));
  say(exposed.key, 4096);
  EXPECT_FALSE(far_.event());
  EXPECT_EQ(far_.counter("engine.refused.stale"), 901u);
  has_arena = true;
  say(exposed.key, 4096);
  EXPECT_EQ(far_.event()->length, 4096u) << "it could have done it";
  say(exposed.key, 4096);
  EXPECT_EQ(far_.counter("engine.refused.stale"), 902u) << "once";
}

// Any peer of the owner can overwrite the word by which another one claimed the exposure.
TEST_F(EngineDirect, WhatAnybodyWritesInTheTableTakesNothingFromWhoeverHasDoneIt) {
  const auto there = far_.shared(4096);
  std::vector<std::byte> mine(4096, std::byte{7});
  for (const std::uint64_t lie : {0ULL, 1ULL, 2ULL, 5000ULL, ~0ULL}) {
    const Exposed exposed(far_, there, true);
    ASSERT_EQ(put(exposed, mine), Status::ok);
    ASSERT_EQ(near_.event()->status, Status::ok) << "it is done, and the owner has not run yet";
    shown(exposed).holder.store(lie);
    const auto end = next(far_);
    ASSERT_TRUE(end) << lie;
    EXPECT_EQ(end->status, Status::ok);
    EXPECT_EQ(end->length, 4096u);
  }
}

// According to the table the lost peer had claimed all exposures. It used only one of them.
TEST_F(EngineDirect, APeerThatIsGoneEndsNoMoreThanWhatItWasAt) {
  const auto there = far_.shared(4096);
  auto second = guest();
  shm::Connection& to = second->peer(second->find(direct_place(2)));
  const std::uint64_t name = to.doorbell_bit + 1;
  const Exposed before(far_, there, true), claimed(far_, there, true), after(far_, there, true);
  for (const Exposed* one : {&before, &claimed, &after}) shown(*one).holder.store(name);
  to.enter(shm::Use::of_exposure(claimed.key));
  second.reset();
  const auto end = next(far_);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->status, Status::refused);
  for (int step = 0; step < 100; ++step) pass();
  EXPECT_FALSE(far_.event());
  EXPECT_EQ(shown(claimed).holder.load(), 0u);
  EXPECT_EQ(far_.engine->use().operations, 2u);
  // The peer had entered this one, but had not claimed it.
  second = guest();
  shm::Connection& again = second->peer(second->find(direct_place(2)));
  again.enter(shm::Use::of_exposure(after.key));
  shown(after).holder.store(after.key);
  second.reset();
  for (int step = 0; step < 100; ++step) pass();
  EXPECT_FALSE(far_.event());
  std::vector<std::byte> mine(10);
  EXPECT_EQ(put(after, mine), Status::ok);
  EXPECT_EQ(next(far_)->status, Status::ok) << "it still serves";
}

// Ringing the doorbell may take a system call. write() leaves it to alert(), after the read section.
TEST_F(EngineDirect, WhatIsWrittenRingsOnlyWhenTheSleeperIsAlerted) {
  auto& transport = const_cast<shm::Transport&>(*std::as_const(*near_.engine).shm_transport());
  const auto peer = transport.find(direct_place(2));
  ASSERT_TRUE(peer);
  shm::Connection& to = *transport.mapped_peer(*peer);
  for (int step = 0; step < 100 && !far_.engine->arm(); ++step) pass();
  const int news = far_.engine->connections()->descriptor();
  const auto is_readable = [&] {
    pollfd one{news, POLLIN, 0};
    return ::poll(&one, 1, 0) == 1;
  };
  ASSERT_FALSE(is_readable());
  ASSERT_TRUE(transport.write(*peer, {.operation = wire::Operation::carried_out}));
  EXPECT_FALSE(is_readable());
  to.alert();
  EXPECT_TRUE(is_readable());
}

// A peer that has claimed an exposure may stop half-way.
TEST_F(EngineDirect, WhatIsHeldForLongEndsByForce) {
  const auto there = far_.shared(4096);
  const Exposed held(far_, there, true);
  shm::Connection& to = near_.engine->connections()->peer(near_.engine->connections()->find(direct_place(2)));
  to.enter(shm::Use::of_exposure(held.key));
  ASSERT_TRUE(shown(held).claim(held.key, to.doorbell_bit + 1));
  EXPECT_TRUE(far_.engine->cancel(far_.port, held.operation, now_));
  for (int step = 0; step < 100; ++step) pass();
  EXPECT_FALSE(far_.event()) << "it has time to go on";
  now_ += 6s;
  const auto end = next(far_);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->status, Status::canceled);
  EXPECT_EQ(far_.engine->use().operations, 0u);
}

// The peer reads so slowly that a long message would take minutes.
TEST_F(EngineDirect, AMessageThatIsCancelledEndsAtOnceThoughItsReaderIsSlow) {
  std::vector<std::byte> bytes(4 << 20);
  iovec piece{bytes.data(), bytes.size()};
  OperationHandle operation;
  ASSERT_EQ(near_.engine->messages().send(
                near_.port, {.to = {direct_place(2), kPort}, .part = {{&piece, 1}, bytes.size(), 5}}, operation, now_),
            Status::ok);
  pass();
  EXPECT_TRUE(near_.engine->cancel(near_.port, operation, now_));
  const auto end = near_.event();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->status, Status::canceled);
  for (int step = 0; step < 1000; ++step) pass();
  EXPECT_EQ(far_.engine->use().placements, 0U);
  EXPECT_EQ(near_.counter("engine.expelled.holds_memory"), 0U);
}

}  // namespace
}  // namespace fairlead::engine
