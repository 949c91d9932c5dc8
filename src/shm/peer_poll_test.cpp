// A poll of a peer: when its records are consumed, and what stays for the next pass.

#include "shm/peer_poll.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "base/place_for_tests.hpp"
#include "shm/transport.hpp"

namespace fairlead::shm {
namespace {

using namespace std::chrono_literals;

class PeerPollTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(peer_->ask(base::place_for_tests(0), {}));
    shm_.attend(now_);
    ASSERT_FALSE(shm_.next_peer());
    peer_->attend({});
    pass();
    ASSERT_EQ(next(), std::byte{0});
  }
  static std::unique_ptr<Connections> open(std::uint16_t number) {
    return Connections::open(base::place_for_tests(number), number + 1U, {.ring_bytes = 64 * 1024}).value();
  }
  /// The peer writes a record with one byte: a message, or a part of one of `size` bytes.
  void write(std::byte byte, wire::ShmKind kind = wire::ShmKind::inlined, const wire::Envelope& envelope = {},
             std::uint64_t size = 1) {
    Connection& to = peer_->peer(peer_->find(base::place_for_tests(0)));
    const std::size_t before = wire::shm_head_bytes(kind);
    std::byte* const out = to.writer.reserve(before + 1);
    ASSERT_NE(out, nullptr);
    wire::encode_shm(out, kind, envelope, size);
    out[before] = byte;
    to.writer.publish(before + 1, to.reader.read());
    to.alert();
  }
  void pass() {
    now_ += 10us;
    shm_.begin_pass(now_);
    is_in_pass_ = shm_.next_peer();
  }
  /// Returns the byte of the next message; 0 if there is none, which ends the pass.
  std::byte next(bool has_room = true) {
    for (; is_in_pass_; is_in_pass_ = shm_.next_peer()) {
      message_ = shm_.next_message(has_room);
      if (message_ != nullptr) return message_->bytes[0];
      while (shm_.next_outcome(has_room) != nullptr) ++outcomes_;
    }
    return std::byte{0};
  }
  std::uint64_t lines_read() {
    return std::as_const(shm_).connections().peer(shm_.connections().find(base::place_for_tests(1))).reader.read();
  }

  base::Instant now_{1s};
  Transport shm_{open(0), {}};
  std::unique_ptr<Connections> peer_ = open(1);
  bool is_in_pass_ = false;
  const link::Delivery* message_ = nullptr;
  int outcomes_ = 0;
};

TEST_F(PeerPollTest, ARecordIsConsumedWhenTheNextOneIsAskedFor) {
  write(std::byte{1});
  write(std::byte{2});
  pass();
  const std::uint64_t before = lines_read();
  EXPECT_EQ(next(), std::byte{1});
  EXPECT_EQ(lines_read(), before) << "the peer might write over what nobody has taken";
  EXPECT_EQ(next(), std::byte{2});
  EXPECT_EQ(lines_read(), before + 1);
  EXPECT_EQ(next(), std::byte{0});
  EXPECT_EQ(lines_read(), before + 2);
  EXPECT_TRUE(shm_.has_found());
  pass();
  EXPECT_EQ(next(), std::byte{0});
  EXPECT_FALSE(shm_.has_found());
}

TEST_F(PeerPollTest, WithoutRoomMessagesStayForTheNextPass) {
  for (const int byte : {1, 2, 3}) write(static_cast<std::byte>(byte));
  pass();
  EXPECT_EQ(next(), std::byte{1});
  EXPECT_EQ(next(false), std::byte{0});
  pass();
  EXPECT_EQ(next(), std::byte{2});
  EXPECT_EQ(next(), std::byte{3});
  EXPECT_EQ(next(), std::byte{0});
}

// Deliveries of different forms follow each other, and none has anything of the one before.
TEST_F(PeerPollTest, AMessageBetweenThePartsOfALongOneIsComplete) {
  const wire::Envelope named{
      .flags = 1, .source_port = 2, .target_port = 3, .key = 4, .cookie = 5, .offset = 6, .a = 7};
  write(std::byte{1}, wire::ShmKind::first, named, 2);
  write(std::byte{2}, wire::ShmKind::inlined, {.source_port = 8, .target_port = 9});
  write(std::byte{3}, wire::ShmKind::next);
  write(std::byte{4}, wire::ShmKind::whole, named);
  write(std::byte{5}, wire::ShmKind::inlined, {.source_port = 8, .target_port = 9});
  pass();
  const auto expect = [&](int byte, const wire::Envelope& envelope, std::uint64_t size, std::uint64_t offset) {
    ASSERT_EQ(next(), static_cast<std::byte>(byte));
    const link::Delivery& message = *message_;
    EXPECT_EQ(message.envelope, envelope) << byte;
    EXPECT_EQ(message.size, size) << byte;
    EXPECT_EQ(message.offset, offset) << byte;
    EXPECT_EQ(message.is_first, offset == 0) << byte;
    EXPECT_EQ(message.is_last, offset + 1 == size) << byte;
    EXPECT_EQ(message.is_short(), size == 1) << byte;
  };
  expect(1, named, 2, 0);
  expect(2, {.source_port = 8, .target_port = 9}, 1, 0);
  expect(3, named, 2, 1);
  expect(4, named, 1, 0);
  expect(5, {.source_port = 8, .target_port = 9}, 1, 0);
  EXPECT_EQ(next(), std::byte{0});
}

// A peer that breaks the rules loses its connection; what it has read is of no interest any more.
TEST_F(PeerPollTest, AnInvalidRecordEndsThePoll) {
  write(std::byte{1});
  write(std::byte{2}, wire::ShmKind::next);  // of a message that no record has begun
  write(std::byte{3});
  pass();
  EXPECT_EQ(next(), std::byte{1});
  EXPECT_EQ(shm_.next_message(true), nullptr);
  EXPECT_EQ(shm_.next_message(true), nullptr);
  EXPECT_EQ(shm_.next_outcome(true), nullptr);
  EXPECT_FALSE(shm_.next_peer());
  EXPECT_TRUE(shm_.has_found());
}

// The caller has failed to take the message: it comes again.
TEST_F(PeerPollTest, APassThatIsGivenUpLosesNothing) {
  write(std::byte{1});
  pass();
  EXPECT_EQ(next(), std::byte{1});
  pass();
  EXPECT_EQ(next(), std::byte{1});
  EXPECT_EQ(next(), std::byte{0});
}

}  // namespace
}  // namespace fairlead::shm
