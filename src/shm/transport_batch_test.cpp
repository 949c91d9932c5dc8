// Short messages that are sent together and share a record.

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <vector>

#include "engine/engine_pair_for_tests.hpp"

namespace fairlead::shm {
namespace {

class TransportBatch : public engine::EnginePair {
 protected:
  void SetUp() override {
    engine::EnginePair::SetUp();
    // The first message finds the peer; afterwards the network must be idle.
    receive(8);
    ASSERT_EQ(send({8}), 0u);
    ASSERT_EQ(
        near_.engine->messages().send(near_.port, {.to = to_, .part = parts_.back()}, names_.emplace_back(), now_),
        Status::ok);
    ASSERT_TRUE(next(far_) && next(near_));
    for (int step = 0; step < 1000; ++step) pass();
    ASSERT_NE(near_.engine->find_local(to_.engine), nullptr);
    parts_.clear();
  }
  /// Makes one message of each size. Returns how many took the fast path.
  std::size_t send(const std::vector<std::size_t>& sizes, std::vector<engine::OperationHandle>* names_of = nullptr) {
    std::vector<link::SendPart> parts;
    for (const std::size_t size : sizes) {
      auto& bytes = sent_.emplace_back(size);
      for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(sent_.size() * 31 + i);
      pieces_.push_back({bytes.data(), size});
      parts.push_back({{&pieces_.back(), 1}, size, sent_.size()});
    }
    parts_.insert(parts_.end(), parts.begin(), parts.end());
    std::vector<engine::OperationHandle> names(parts.size());
    const link::PeerHandle* const peer = near_.engine->find_local(to_.engine);
    if (peer == nullptr) return 0;
    const std::size_t count = near_.engine->messages().send_short(near_.port, *peer, to_.port, parts, names, now_);
    if (names_of != nullptr) *names_of = names;
    return count;
  }
  Connection& peer_ring() {
    Connections& connections = *near_.engine->connections();
    return connections.peer(connections.find(engine::direct_place(2)));
  }
  std::span<std::byte> receive(std::size_t bytes, std::uint32_t messages = 1) {
    auto& buffer = received_.emplace_back(bytes);
    pieces_.push_back({buffer.data(), bytes});
    engine::OperationHandle name;
    EXPECT_EQ(
        far_.engine->messages().post_receive(
            far_.port, {.memory = {&pieces_.back(), 1}, .size_min = 1, .messages_max = messages, .cookie = 1}, name),
        Status::ok);
    return buffer;
  }
  /// The next message at the far side must be number `index` of those sent.
  void expect_message(std::size_t index, std::span<const std::byte> buffer) {
    const auto event = next(far_);
    ASSERT_TRUE(event);
    ASSERT_EQ(event->length, sent_[index].size());
    EXPECT_EQ(std::memcmp(buffer.data() + event->offset, sent_[index].data(), event->length), 0) << "message " << index;
  }

  const engine::RemotePort to_{engine::direct_place(2), engine::kPort};
  std::deque<std::vector<std::byte>> sent_, received_;
  std::deque<iovec> pieces_;
  std::vector<link::SendPart> parts_;
  std::deque<engine::OperationHandle> names_;
};

TEST_F(TransportBatch, AllArriveInOrderWhateverTheirSizes) {
  std::vector<std::size_t> sizes(120);
  for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] = i % 40 == 39 ? 5000 : i % 7 == 6 ? 129 : i + 1;
  const auto buffer = receive(100'000, 1000);
  const std::size_t first = sent_.size();
  ASSERT_EQ(send(sizes), sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) expect_message(first + i, buffer);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto end = next(near_);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->cookie, first + i + 1);
    EXPECT_EQ(end->status, Status::ok);
    EXPECT_EQ(end->length, sizes[i]);
  }
}

// An engine that ends waits for its messages, unless they were cancelled.
TEST_F(TransportBatch, WhatIsCancelledIsOwedToNobody) {
  std::vector<engine::OperationHandle> names;
  ASSERT_EQ(send({8, 8, 5000}, &names), 3u);
  for (const engine::OperationHandle name : names) {
    EXPECT_TRUE(near_.engine->is_owing());
    EXPECT_TRUE(near_.engine->messages().cancel(near_.port, name, now_));
  }
  EXPECT_FALSE(near_.engine->is_owing());
}

TEST_F(TransportBatch, GoOnInTheNextBuffer) {
  const auto one = receive(64, 3), two = receive(20, 100), three = receive(1000, 100);
  const std::size_t first = sent_.size();
  ASSERT_EQ(send({8, 8, 8, 8, 8, 8, 8, 8}), 8u);
  for (std::size_t i = 0; i < 8; ++i) expect_message(first + i, i < 3 ? one : i < 5 ? two : three);
}

TEST_F(TransportBatch, EachIsDroppedAndCountedForWhichThereIsNoBuffer) {
  const auto buffer = receive(64, 2);
  const std::size_t first = sent_.size();
  ASSERT_EQ(send({8, 8, 8, 8, 8}), 5u);
  expect_message(first, buffer);
  expect_message(first + 1, buffer);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(next(near_));
  EXPECT_FALSE(far_.event());
  EXPECT_EQ(far_.engine->ports().find(far_.port)->dropped_no_buffer.load(), 3u);
}

TEST_F(TransportBatch, ThoseThatAreShortShareLines) {
  receive(10'000, 100);
  const auto lines_of = [&](const std::vector<std::size_t>& sizes) {
    const std::uint64_t before = peer_ring().writer.written();
    EXPECT_EQ(send(sizes), sizes.size());
    return peer_ring().writer.written() - before;
  };
  const std::uint64_t one = lines_of({8});
  EXPECT_EQ(lines_of({8, 8, 8, 8, 8, 8, 8, 8}), 2 * one);
  EXPECT_EQ(lines_of({129, 129}), 2 * lines_of({129}));
  std::vector<std::size_t> hundred(100, 8);
  EXPECT_LE(lines_of(hundred), 20 * one);
}

// The second message claims to be longer than the record.
TEST_F(TransportBatch, AWrongLengthEndsThePeer) {
  receive(1000, 100);
  Connection& to = peer_ring();
  constexpr std::size_t kManyHead = wire::shm_head_bytes(wire::ShmKind::batch), kBytes = kManyHead + 2 + 8 + 2 + 8;
  std::byte* const body = to.writer.reserve(kBytes);
  ASSERT_NE(body, nullptr);
  std::memset(body, 0x11, kBytes);
  wire::encode_shm(body, wire::ShmKind::batch,
                   {.operation = wire::Operation::message, .source_port = 9, .target_port = engine::kPort}, 0);
  const wire::ShmLength right = 8, wrong = 9;
  std::memcpy(body + kManyHead, &right, sizeof right);
  std::memcpy(body + kManyHead + 2 + 8, &wrong, sizeof wrong);
  to.writer.publish(kBytes, to.reader.read());
  to.alert();
  for (int step = 0; step < 10; ++step) pass();
  EXPECT_FALSE(far_.event());
  EXPECT_EQ(far_.counter("shm.refused_record"), 1u);
}

// A record with fifty thousand empty messages would delay the pass, and every other peer.
TEST_F(TransportBatch, ALongRecordOfManyEndsThePeer) {
  receive(1000, 100);
  Connection& to = peer_ring();
  constexpr std::size_t kBytes = wire::shm_head_bytes(wire::ShmKind::batch) + 1002;
  std::byte* const body = to.writer.reserve(kBytes);
  ASSERT_NE(body, nullptr);
  std::memset(body, 0, kBytes);
  wire::encode_shm(body, wire::ShmKind::batch,
                   {.operation = wire::Operation::message, .source_port = 9, .target_port = engine::kPort}, 0);
  to.writer.publish(kBytes, to.reader.read());
  to.alert();
  for (int step = 0; step < 10; ++step) pass();
  EXPECT_FALSE(far_.event());
  EXPECT_EQ(far_.counter("shm.refused_record"), 1u);
}

}  // namespace
}  // namespace fairlead::shm
