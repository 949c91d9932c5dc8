// A stranger on the network (stranger.hpp) attacks the queue pairs of a whole engine with its socket. Each attack
// worked once.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/stranger.hpp"
#include "verbs/pair_for_tests.hpp"

namespace fairlead::tests {
namespace {

using wire::Operation;

// The upper bits of a queue pair's number are its engine's port, counted from here.
constexpr std::uint16_t kPortFirst = 20480;
constexpr const char* kStrangersIp = "127.0.0.77";

class AttackedQueuePair : public testing::Test {
 protected:
  base::SocketAddress address_of(const verbs::QueuePair& pair) const {
    return *base::SocketAddress::from_ip("127.0.0.1", static_cast<std::uint16_t>(kPortFirst + (pair.number() >> 14)));
  }
  /// A device with the stranger's address as its gid.
  static verbs::Device device_of(const Stranger& stranger) {
    verbs::Device device;
    device.gid = stranger.address().ip;
    return device;
  }
  static std::uint32_t number_of(const Stranger& stranger) {
    return static_cast<std::uint32_t>(stranger.address().port - kPortFirst) << 14 | 7;
  }

  verbs::Side side_{1, verbs::Road::udp};
};

// The engine has executed a write. The same request number with a read must get the check of the right to read.
TEST_F(AttackedQueuePair, IsNotReadUnderTheNumberOfAWrite) {
  auto pair = verbs::make_pair_at(side_);
  ASSERT_TRUE(pair) << pair.error().message;
  Stranger stranger(address_of(*pair), kStrangersIp, kPortFirst);
  const verbs::PairOptions options{.rights = verbs::access::remote_write, .max_dest_rd_atomic = 0};
  verbs::move_up(*pair, verbs::attributes_for(options, device_of(stranger), number_of(stranger), 500, 1000),
                 verbs::QpState::rts);
  ASSERT_TRUE(stranger.open_session());
  constexpr std::string_view kSecret = "not for this queue pair";
  std::ranges::copy(std::as_bytes(std::span(kSecret)), side_.memory.begin());

  const std::uint64_t key = 1000ULL << 32 | side_.region.rkey();
  const std::vector<std::byte> byte(1);
  stranger.say({.operation = Operation::pair_write,
                .source_port = number_of(stranger),
                .target_port = pair->number(),
                .key = key,
                .offset = side_.remote(4096)},
               byte);
  ASSERT_TRUE(stranger.settle());
  ASSERT_TRUE(!stranger.heard().empty() || stranger.listen(1));
  EXPECT_EQ(stranger.heard().back().envelope.status, 0) << "the write is executed";
  stranger.heard().clear();
  stranger.say({.operation = Operation::pair_read,
                .source_port = number_of(stranger),
                .target_port = pair->number(),
                .key = key,
                .offset = side_.remote(0),
                .a = kSecret.size()});
  ASSERT_TRUE(stranger.settle());
  ASSERT_TRUE(!stranger.heard().empty() || stranger.listen(1));
  for (const Stranger::Heard& answer : stranger.heard()) EXPECT_TRUE(answer.bytes.empty());
  EXPECT_NE(stranger.heard().front().envelope.status, 0) << "and hears that it may not";
}

// Unfinished datagrams, half of them with a wrong key, half to a number that does not exist: the engine drops all of
// them at their first chunk.
TEST_F(AttackedQueuePair, KeepsNothingOfDatagramsThatItWouldNotTake) {
  auto pair = verbs::make_pair_at(side_, verbs::QpType::ud);
  ASSERT_TRUE(pair) << pair.error().message;
  Stranger stranger(address_of(*pair), kStrangersIp);
  verbs::move_up(*pair, verbs::attributes_for({}, device_of(stranger), 1, 500, 1000), verbs::QpState::rts);
  ASSERT_TRUE(stranger.open_session());
  const verbs::Sge sge = side_.sge(0, 8192);
  ASSERT_EQ(pair->post_receive(verbs::ReceiveRequest{.id = 5, .sges = {&sge, 1}}), 0);
  const std::vector<std::byte> half(2000);
  constexpr std::uint32_t kOpen = 64;  // the number of unfinished messages that a peer may have
  for (std::uint32_t slot = 0; slot < kOpen; ++slot) {
    stranger.say_chunk({.operation = Operation::pair_datagram,
                        .source_port = 9,
                        .target_port = slot % 2 == 0 ? pair->number() : pair->number() + 1,
                        .key = verbs::kQueueKey + 1},
                       {.message = slot + 1, .slot = slot, .size = 4000, .offset = 0}, half);
  }
  ASSERT_TRUE(stranger.settle());
  EXPECT_EQ(side_.counted("qp.dropped_queue_key"), 32u);
  EXPECT_EQ(side_.counted("qp.refused_not_ready"), 32u);

  // A sender with the right key is heard when it sends chunks in the same way.
  Stranger decent(address_of(*pair), "127.0.0.78");
  ASSERT_TRUE(decent.open_session());
  const wire::Envelope envelope{
      .operation = Operation::pair_datagram, .source_port = 9, .target_port = pair->number(), .key = verbs::kQueueKey};
  for (const std::uint64_t offset : {2000, 0})
    decent.say_chunk(envelope, {.message = 1, .slot = 0, .size = 4000, .offset = offset}, half);
  ASSERT_TRUE(decent.settle());
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  verbs::WorkCompletion completion;
  while (side_.queue.poll({&completion, 1}) == 0 && std::chrono::steady_clock::now() < end) {
  }
  EXPECT_EQ(completion.wr_id, 5u);
  EXPECT_EQ(completion.byte_len, 4040u);
}

}  // namespace
}  // namespace fairlead::tests
