#include "seal/noise_handshake.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "seal/hex.hpp"
#include "seal/libcrypto.hpp"
#include "seal/noise_vectors_for_tests.hpp"

namespace fairlead::seal {
namespace {

std::vector<std::byte> bytes_of(std::string_view hex) {
  std::vector<std::byte> bytes(hex.size() / 2);
  EXPECT_TRUE(from_hex(hex, bytes));
  return bytes;
}

Key key_of(std::string_view hex) {
  Key key;
  EXPECT_TRUE(from_hex(hex, key.bytes()));
  return key;
}

NoiseHandshake side_of(const testing::NoiseVector& vector, NoiseRole role) {
  const bool is_initiator = role == NoiseRole::initiator;
  NoiseKeys keys;
  keys.ephemeral = key_of(is_initiator ? vector.initiator_ephemeral : vector.responder_ephemeral);
  if (!vector.psk.empty()) keys.pre_shared = key_of(vector.psk);
  if (vector.pattern == NoisePattern::ik) {
    keys.own = key_of(is_initiator ? vector.initiator_static : vector.responder_static);
    if (is_initiator) keys.other_static = public_key_of(key_of(vector.responder_static));
  }
  return NoiseHandshake(vector.pattern, role, bytes_of(vector.prologue), keys);
}

Nonce nonce_of(std::uint8_t number) {
  Nonce nonce{};
  nonce[4] = std::byte{number};
  return nonce;
}

class NoiseVectors : public ::testing::TestWithParam<testing::NoiseVector> {
 protected:
  void SetUp() override { ASSERT_TRUE(load_libcrypto()); }
};

TEST_P(NoiseVectors, EachMessageIsThePublishedOne) {
  const testing::NoiseVector& vector = GetParam();
  if (!vector.responder_static_public.empty()) {
    EXPECT_EQ(to_hex(public_key_of(key_of(vector.responder_static))), vector.responder_static_public);
  }
  NoiseHandshake initiator = side_of(vector, NoiseRole::initiator), responder = side_of(vector, NoiseRole::responder);
  for (std::size_t i = 0; i < NoiseHandshake::kMessages; ++i) {
    NoiseHandshake& writer = i == 0 ? initiator : responder;
    NoiseHandshake& reader = i == 0 ? responder : initiator;
    const std::vector<std::byte> payload = bytes_of(vector.messages[i].payload);
    std::vector<std::byte> message(payload.size() + NoiseHandshake::overhead(vector.pattern, i));
    ASSERT_TRUE(writer.write(payload, message.data()));
    EXPECT_EQ(to_hex(message), vector.messages[i].ciphertext);
    std::vector<std::byte> read(payload.size());
    ASSERT_TRUE(reader.read(message, read.data()));
    EXPECT_EQ(read, payload);
  }
  EXPECT_TRUE(initiator.is_over() && responder.is_over());
  EXPECT_EQ(initiator.hash(), responder.hash());
  if (!vector.handshake_hash.empty()) {
    EXPECT_EQ(to_hex(initiator.hash()), vector.handshake_hash);
  }
  const auto keys = responder.split();
  for (std::size_t i = NoiseHandshake::kMessages; i < vector.messages.size(); ++i) {
    const std::vector<std::byte> payload = bytes_of(vector.messages[i].payload);
    if (payload.empty()) break;
    std::vector<std::byte> sealed(payload.size() + kTagBytes);
    chacha_seal(i % 2 == 0 ? keys.initiator : keys.responder, nonce_of(static_cast<std::uint8_t>(i / 2 - 1)), {},
                payload, sealed.data());
    EXPECT_EQ(to_hex(sealed), vector.messages[i].ciphertext);
  }
  if (vector.pattern == NoisePattern::ik) {
    EXPECT_EQ(*responder.other_static(), public_key_of(key_of(vector.initiator_static)));
  }
}

TEST_P(NoiseVectors, NoBitOfAMessageMayBeChanged) {
  const testing::NoiseVector& vector = GetParam();
  const std::vector<std::byte> payload(48);
  for (std::size_t i = 0; i < NoiseHandshake::kMessages; ++i) {
    std::vector<std::byte> read(payload.size());
    const std::size_t bits = 8 * (payload.size() + NoiseHandshake::overhead(vector.pattern, i));
    for (std::size_t bit = 0; bit < bits; bit += 3) {
      NoiseHandshake initiator = side_of(vector, NoiseRole::initiator);
      NoiseHandshake responder = side_of(vector, NoiseRole::responder);
      std::vector<std::byte> message(payload.size() + NoiseHandshake::overhead(vector.pattern, 0));
      ASSERT_TRUE(initiator.write(payload, message.data()));
      if (i == 1) {
        ASSERT_TRUE(responder.read(message, read.data()));
        message.resize(payload.size() + NoiseHandshake::overhead(vector.pattern, 1));
        ASSERT_TRUE(responder.write(payload, message.data()));
      }
      message[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
      EXPECT_FALSE((i == 0 ? responder : initiator).read(message, read.data())) << "bit " << bit << " of message " << i;
    }
  }
}

TEST_P(NoiseVectors, AShortenedMessageIsRefused) {
  const testing::NoiseVector& vector = GetParam();
  const std::vector<std::byte> payload(48);
  NoiseHandshake initiator = side_of(vector, NoiseRole::initiator);
  std::vector<std::byte> message(payload.size() + NoiseHandshake::overhead(vector.pattern, 0));
  ASSERT_TRUE(initiator.write(payload, message.data()));
  std::vector<std::byte> read(payload.size());
  for (std::size_t length = 0; length < message.size(); length += 5) {
    EXPECT_FALSE(side_of(vector, NoiseRole::responder).read(Bytes(message).first(length), read.data())) << length;
  }
}

INSTANTIATE_TEST_SUITE_P(Published, NoiseVectors, ::testing::ValuesIn(testing::kNoiseVectors));

TEST(NoiseHandshake, AnotherSecretIsRefusedBeforeAnyAgreement) {
  ASSERT_TRUE(load_libcrypto());
  NoiseKeys keys;
  keys.ephemeral = Key(sha256({}));
  keys.pre_shared = key_of(std::string(64, 'a'));
  NoiseHandshake initiator(NoisePattern::nn_psk0, NoiseRole::initiator, {}, keys);
  std::vector<std::byte> message(NoiseHandshake::overhead(NoisePattern::nn_psk0, 0));
  ASSERT_TRUE(initiator.write({}, message.data()));
  keys.pre_shared = key_of(std::string(64, 'b'));
  NoiseHandshake responder(NoisePattern::nn_psk0, NoiseRole::responder, {}, keys);
  EXPECT_FALSE(responder.read(message, nullptr));
}

TEST(NoiseHandshake, APublicKeyThatMakesEverySecretZeroIsRefused) {
  ASSERT_TRUE(load_libcrypto());
  const testing::NoiseVector& vector = testing::kNoiseVectors[0];
  NoiseKeys keys;
  keys.ephemeral = key_of(vector.initiator_ephemeral);
  keys.own = key_of(vector.responder_static_public.empty() ? vector.initiator_ephemeral : vector.responder_static);
  keys.other_static = PublicKey{};
  NoiseHandshake initiator(NoisePattern::ik, NoiseRole::initiator, {}, keys);
  std::vector<std::byte> message(NoiseHandshake::overhead(NoisePattern::ik, 0));
  EXPECT_FALSE(initiator.write({}, message.data()));
}

}  // namespace
}  // namespace fairlead::seal
