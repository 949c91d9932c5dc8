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
    ASSERT_EQ(shm_.next(true), Arrived::nothing);
    peer_->attend({});
    pass();
    ASSERT_EQ(shm_.next(true), Arrived::nothing);
  }
  static std::unique_ptr<Connections> open(std::uint16_t number) {
    return Connections::open(base::place_for_tests(number), number + 1U, {.ring_bytes = 64 * 1024}).value();
  }
  /// The peer writes a message of one byte.
  void write(std::byte byte) {
    Connection& to = peer_->peer(peer_->find(base::place_for_tests(0)));
    constexpr std::size_t kBefore = wire::shm_head_bytes(wire::ShmKind::inlined);
    std::byte* const out = to.writer.reserve(kBefore + 1);
    ASSERT_NE(out, nullptr);
    wire::encode_shm(out, wire::ShmKind::inlined, {.operation = wire::Operation::message}, 1);
    out[kBefore] = byte;
    to.writer.publish(kBefore + 1, to.reader.read());
    to.alert();
  }
  void pass() {
    now_ += 10us;
    shm_.begin_pass(now_);
  }
  /// Returns the byte of the next message; 0 if there is none.
  std::byte next(bool has_room = true) {
    return shm_.next(has_room) == Arrived::message ? shm_.message().bytes[0] : std::byte{0};
  }
  std::uint64_t lines_read() {
    return std::as_const(shm_).connections().peer(shm_.connections().find(base::place_for_tests(1))).reader.read();
  }

  base::Instant now_{1s};
  Transport shm_{open(0), {}};
  std::unique_ptr<Connections> peer_ = open(1);
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
