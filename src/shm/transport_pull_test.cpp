// Long messages by reference: the receiver copies them from the sender's arena once, and the sender's operation ends
// then.

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <random>
#include <vector>

#include "engine/engine_pair_for_tests.hpp"

namespace fairlead::shm {
namespace {

using namespace std::chrono_literals;

class TransportPull : public engine::EnginePair {
 protected:
  TransportPull() : engine::EnginePair(true) {}

  engine::OperationHandle send(std::span<std::byte> memory) {
    pieces_.push_back({memory.data(), memory.size()});
    engine::OperationHandle operation;
    EXPECT_EQ(near_.engine->messages().send(
                  near_.port,
                  {.to = {engine::direct_place(2), engine::kPort}, .part = {{&pieces_.back(), 1}, memory.size(), 5}},
                  operation, now_),
              Status::ok);
    return operation;
  }
  void receive(std::span<std::byte> memory) {
    pieces_.push_back({memory.data(), memory.size()});
    engine::OperationHandle operation;
    EXPECT_EQ(far_.engine->messages().post_receive(
                  far_.port, {.memory = {&pieces_.back(), 1}, .size_min = 1, .messages_max = 1, .takes_loans = true},
                  operation),
              Status::ok);
  }
  std::span<std::byte> filled(std::uint64_t size) {
    const auto bytes = near_.shared(size);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>((i * 13 + size) >> 2);
    return bytes;
  }

  std::deque<iovec> pieces_;
};

TEST_F(TransportPull, AMessageInTheArenaIsCopiedOnceByItsReceiver) {
  std::uint64_t pulled = 0;
  for (const std::uint64_t size : {8193, 16'384, 1'000'000}) {
    const auto bytes = filled(size);
    std::vector<std::byte> buffer(size);
    receive(buffer);
    send(bytes);
    for (int step = 0; step < 20; ++step) pass(false);
    EXPECT_FALSE(near_.event()) << "not before it is read";
    const auto there = next(far_), here = next(near_);
    ASSERT_TRUE(there && here);
    EXPECT_EQ(there->status, Status::ok);
    EXPECT_EQ(there->length, size);
    EXPECT_FALSE(there->is_loan) << "nobody lent it";
    EXPECT_EQ(here->status, Status::ok);
    EXPECT_TRUE(std::ranges::equal(buffer, bytes));
    EXPECT_EQ(near_.counter("shm.messages_pulled"), ++pulled);
    EXPECT_EQ(near_.counter("shm.chunks_sent"), 0u);
    near_.engine->connections()->remapped().free(bytes);
  }
}

// Registered memory of the program lies at its old address, and also where its peers see it. The parameter: whether it
// has a remote right.
class TransportPullMoved : public TransportPull, public testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(, TransportPullMoved, testing::Bool());

TEST_P(TransportPullMoved, AMessageInMovedMemoryIsCopiedOnceToo) {
  constexpr std::size_t kSize = 40'960, kPart = 20'000;
  void* const mapped = ::mmap(nullptr, 2 * kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  const std::span memory(static_cast<std::byte*>(mapped), 2 * kSize);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i * 7 >> 3);
  PublishedMemory& published = *near_.engine->connections()->published();
  const auto place = published.move(memory.first(kSize), GetParam(), true);
  ASSERT_TRUE(place);
  EXPECT_EQ(published.remapped.bytes(), GetParam() ? kSize : 0) << "the others must not see it";
  const auto arrives = [&](std::span<std::byte> bytes) {
    std::vector<std::byte> buffer(bytes.size());
    receive(buffer);
    send(bytes);
    return next(far_).has_value() && next(near_).has_value() && std::ranges::equal(buffer, bytes);
  };
  EXPECT_TRUE(arrives(memory.subspan(100, kPart)));
  EXPECT_EQ(near_.counter("shm.messages_pulled"), 1U);
  EXPECT_TRUE(arrives(memory.subspan(kSize - kPart, kPart))) << "up to its end";
  EXPECT_EQ(near_.counter("shm.messages_pulled"), 2U);
  EXPECT_TRUE(arrives(memory.subspan(kSize - kPart + 1, kPart))) << "one byte of it was not moved";
  EXPECT_TRUE(arrives(memory.subspan(kSize, kPart))) << "right behind it";
  EXPECT_EQ(near_.counter("shm.messages_pulled"), 2U);
  published.move_back(place->remap, true);
  EXPECT_TRUE(arrives(memory.subspan(100, kPart))) << "private again";
  EXPECT_EQ(near_.counter("shm.messages_pulled"), 2U);
  ::munmap(mapped, memory.size());
}

// A peer that may not trace us has not mapped the memory, so it could not read a message there.
TEST_F(TransportPull, AMessageThatThePeerDoesNotSeeGoesThroughTheRing) {
  constexpr std::size_t kSize = 40'960;
  void* const mapped = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  const std::span memory(static_cast<std::byte*>(mapped), kSize);
  std::ranges::fill(memory, std::byte{9});
  PublishedMemory& published = *near_.engine->connections()->published();
  const auto place = published.move(memory, false, true);
  ASSERT_TRUE(place);
  Connections& far = *far_.engine->connections();
  far.peer(far.find(engine::direct_place(1))).own->sees = sees::arena;
  std::vector<std::byte> buffer(kSize);
  receive(buffer);
  send(memory);
  ASSERT_TRUE(next(far_));
  EXPECT_TRUE(std::ranges::equal(buffer, memory));
  EXPECT_EQ(near_.counter("shm.messages_pulled"), 0U);
  published.move_back(place->remap, true);
  ::munmap(mapped, kSize);
}

TEST_F(TransportPull, MemoryThatPeersSeeAlreadyIsNotMovedAgain) {
  constexpr std::size_t kSize = 40'960;
  void* const mapped = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  const std::span memory(static_cast<std::byte*>(mapped), kSize);
  PublishedMemory& published = *near_.engine->connections()->published();
  const auto first = published.move(memory, true, true), second = published.move(memory, false, true);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->offset, second->offset);
  EXPECT_EQ(published.traced->ranges().bytes(), 0U);
  published.move_back(first->remap, true);
  EXPECT_EQ(published.remapped.bytes(), kSize) << "the second region uses it";
  published.move_back(second->remap, true);
  EXPECT_EQ(published.remapped.bytes(), 0U);
  ::munmap(mapped, kSize);
}

TEST_F(TransportPull, WhatLiesElsewhereOrIsShortGoesThroughTheRing) {
  std::vector<std::byte> own(20'000, std::byte{3}), buffer(20'000);
  receive(buffer);
  send(own);
  ASSERT_TRUE(next(far_));
  EXPECT_TRUE(std::ranges::equal(buffer, own));
  receive(buffer);
  send(filled(8192));
  ASSERT_TRUE(next(far_));
  EXPECT_EQ(near_.counter("shm.messages_pulled"), 0u);
}

TEST_F(TransportPull, WhoeverEndsBeforeItIsReadEndsIt) {
  std::vector<std::byte> buffer(20'000);
  receive(buffer);
  send(filled(20'000));
  far_.engine.reset();
  for (int step = 0; step < 1000; ++step) {
    now_ += 25us;
    near_.engine->progress(now_);
  }
  const auto end = near_.event();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->status, Status::refused);
}

/// Both sides of a ticket by hand: what the reader finds if the sender revokes it at each moment.
TEST_F(TransportPull, WhatIsTakenBackIsNotBelieved) {
  shm::Tickets tickets;
  shm::Tickets::Words words = {};
  const std::uint32_t first = tickets.give(words, 7), second = tickets.give(words, 8);
  const auto delivery = [&](std::uint32_t ticket) {
    return link::Delivery{.permission = &words[ticket % Tickets::kCount], .ticket = ticket};
  };
  EXPECT_TRUE(delivery(first).is_good() && delivery(second).is_good());
  EXPECT_TRUE(tickets.take_back(words, 7));
  EXPECT_FALSE(tickets.take_back(words, 7));
  EXPECT_FALSE(delivery(first).is_good());
  EXPECT_TRUE(delivery(second).is_good());
  EXPECT_FALSE(tickets.end(words, first)) << "it has had its end";
  EXPECT_TRUE(tickets.end(words, second));
  for (std::uint32_t i = 0; i < 3 * Tickets::kCount; ++i) {
    const std::uint32_t next = tickets.give(words, 100 + i);
    ASSERT_NE(next, 0U);
    EXPECT_FALSE(delivery(first).is_good()) << "though its word is in use again";
    ASSERT_TRUE(tickets.end(words, next));
  }
  for (std::uint32_t i = 0; i < Tickets::kCount; ++i) EXPECT_NE(tickets.give(words, i), 0U);
  EXPECT_EQ(tickets.give(words, 1000), 0U) << "all are out: the message goes another way";
}

// Places outside, or at the edge of, the sender's shared memory.
class TransportPullFrom : public TransportPull, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(, TransportPullFrom, testing::Range(0, 18));

TEST_P(TransportPullFrom, AWrongPlaceEndsThePeer) {
  std::mt19937_64 random(static_cast<std::uint64_t>(GetParam()));
  const std::uint64_t bytes = sizeof(onesided::SharedTables) + engine::kShown;
  std::vector<std::byte> buffer(100'000);
  receive(buffer);
  const std::uint64_t size = 1 + random() % 100'000;
  const bool is_right = GetParam() % 3 == 0, is_traced = GetParam() >= 12;
  const std::uint64_t edge = GetParam() % 3 == 1 ? bytes - size + 1 : bytes + (random() >> random() % 60);
  Connection& to = near_.engine->connections()->peer(near_.engine->connections()->find(engine::direct_place(2)));
  const std::size_t head = wire::shm_head_bytes(wire::ShmKind::by_reference);
  wire::encode_shm(to.writer.reserve(head), wire::ShmKind::by_reference,
                   {.operation = wire::Operation::message, .source_port = 9, .target_port = engine::kPort}, size,
                   (is_right ? bytes - size : edge) | (is_traced ? wire::kPlaceIsTraced : 0));
  to.writer.publish(head, to.reader.read());
  to.alert();
  for (int step = 0; step < 10; ++step) pass();
  EXPECT_EQ(far_.event().has_value(), is_right);
  EXPECT_EQ(far_.counter("shm.refused_record"), is_right ? 0U : 1U);
}

}  // namespace
}  // namespace fairlead::shm
