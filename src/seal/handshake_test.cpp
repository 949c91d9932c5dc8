#include "seal/handshake.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "seal/libcrypto.hpp"

namespace fairlead::seal {
namespace {

const base::SocketAddress kOne = *base::SocketAddress::from_ip("10.0.0.1", 1);
const base::SocketAddress kTwo = *base::SocketAddress::from_ip("10.0.0.2", 2);
constexpr std::size_t kPayload = 48;

Key secret(int value) {
  Key key;
  std::ranges::fill(key.bytes(), static_cast<std::byte>(value));
  return key;
}

KnownPeers knowing(const char* ip, const Key& key) {
  KnownPeers peers;
  peers.add({*base::AddressRange::parse(ip)}, public_key_of(key));
  return peers;
}

struct Outcome {
  Refused refused = Refused::none;
  bool is_answer_read = false;
  bool are_keys_one = false;
  bool can_begin = true;
};

Outcome meet(const Keyring& initiators, const Keyring& responders, std::uint32_t attempt = 0, Bytes binding = {},
             Bytes other_binding = {}) {
  RandomSource random = RandomSource::of_seed(5);
  Outcome outcome;
  auto initiator = Handshake::begin(initiators, kTwo, attempt, binding, random);
  outcome.can_begin = initiator.has_value();
  if (!initiator) return outcome;
  std::array<std::byte, kPayload> said{}, heard{};
  said[3] = std::byte{33};
  std::vector<std::byte> message(kPayload + initiator->overhead(0));
  EXPECT_TRUE(initiator->write(said, message.data()));
  EXPECT_EQ(*Handshake::ephemeral_of(message), initiator->ephemeral());
  std::size_t length = 0;
  auto responder = Handshake::answer(responders, kOne, other_binding, random, message, heard, length);
  if (!responder) {
    outcome.refused = responder.error();
    return outcome;
  }
  EXPECT_EQ(length, kPayload);
  EXPECT_EQ(heard, said);
  message.resize(kPayload + responder->overhead(1));
  EXPECT_TRUE(responder->write(said, message.data()));
  heard = {};
  outcome.is_answer_read = initiator->read(message, heard) && heard == said;
  const auto one = initiator->keys(best_aead_maker()), two = responder->keys(best_aead_maker());
  const iovec plain{said.data(), said.size()};
  std::array<std::byte, kPayload + kTagBytes> sealed{};
  one->seal(one->take_number(), {}, {&plain, 1}, sealed.data());
  outcome.are_keys_one = two->open(0, {}, sealed, heard.data()) == Opened::ok;
  return outcome;
}

class HandshakeTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(load_libcrypto()); }
};

TEST_F(HandshakeTest, BothEndsComeToTheSameKeys) {
  const Keyring psk = Keyring::of_secrets({secret(1)});
  Outcome outcome = meet(psk, psk);
  EXPECT_TRUE(outcome.is_answer_read && outcome.are_keys_one);
  outcome = meet(Keyring::of_static_keys({secret(1)}, knowing("10.0.0.2", secret(2))),
                 Keyring::of_static_keys({secret(2)}, knowing("10.0.0.1", secret(1))));
  EXPECT_TRUE(outcome.is_answer_read && outcome.are_keys_one);
}

TEST_F(HandshakeTest, AnotherSecretIsRefusedAsThat) {
  EXPECT_EQ(meet(Keyring::of_secrets({secret(1)}), Keyring::of_secrets({secret(2)})).refused, Refused::wrong_secret);
}

TEST_F(HandshakeTest, ASecretIsReplacedInThreeStepsWhileBothEndsGoOn) {
  const std::vector<std::vector<Key>> steps{{secret(1)}, {secret(1), secret(2)}, {secret(2), secret(1)}, {secret(2)}};
  // The ends are at most one step apart.
  for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
    for (const auto& [one, two] : {std::pair(i, i + 1), std::pair(i + 1, i), std::pair(i, i)})
      EXPECT_TRUE(meet(Keyring::of_secrets(steps[one]), Keyring::of_secrets(steps[two])).are_keys_one) << one << two;
  }
  EXPECT_EQ(meet(Keyring::of_secrets(steps[0]), Keyring::of_secrets(steps[3])).refused, Refused::wrong_secret);
}

TEST_F(HandshakeTest, ARespondersStaticKeyIsReplacedWhileItAcceptsBoth) {
  const Keyring responder = Keyring::of_static_keys({secret(3), secret(2)}, knowing("10.0.0.1", secret(1)));
  for (const int known : {2, 3})
    EXPECT_TRUE(meet(Keyring::of_static_keys({secret(1)}, knowing("10.0.0.2", secret(known))), responder).are_keys_one);
  KnownPeers both = knowing("10.0.0.2", secret(9));
  both.add({*base::AddressRange::parse("10.0.0.0/8")}, public_key_of(secret(3)));
  const Keyring initiator = Keyring::of_static_keys({secret(1)}, both);
  EXPECT_EQ(meet(initiator, responder, 0).refused, Refused::wrong_key);
  EXPECT_TRUE(meet(initiator, responder, 1).are_keys_one);
}

TEST_F(HandshakeTest, AnUnknownKeyIsRefusedByTheSideThatLacksIt) {
  const Keyring responder = Keyring::of_static_keys({secret(2)}, knowing("10.0.0.1", secret(1)));
  EXPECT_EQ(meet(Keyring::of_static_keys({secret(7)}, knowing("10.0.0.2", secret(2))), responder).refused,
            Refused::unknown_key);
  // Its key is known, but for another address.
  EXPECT_EQ(meet(Keyring::of_static_keys({secret(1)}, knowing("10.0.0.2", secret(2))),
                 Keyring::of_static_keys({secret(2)}, knowing("10.0.0.9", secret(1))))
                .refused,
            Refused::unknown_key);
  EXPECT_EQ(meet(Keyring::of_static_keys({secret(1)}, knowing("10.0.0.2", secret(8))), responder).refused,
            Refused::wrong_key);
  EXPECT_FALSE(meet(Keyring::of_static_keys({secret(1)}, knowing("10.0.0.9", secret(2))), responder).can_begin);
}

TEST_F(HandshakeTest, TheTwoKindsDoNotMeet) {
  const Keyring psk = Keyring::of_secrets({secret(1)});
  const Keyring initiator = Keyring::of_static_keys({secret(1)}, knowing("10.0.0.2", secret(1)));
  EXPECT_EQ(meet(psk, initiator).refused, Refused::other_kind);
  EXPECT_EQ(meet(initiator, psk).refused, Refused::other_kind);
}

TEST_F(HandshakeTest, IsBoundToTheSessionItIsMadeIn) {
  const Keyring psk = Keyring::of_secrets({secret(1)});
  const Hash one = sha256({}), two = sha256({one});
  EXPECT_TRUE(meet(psk, psk, 0, one, one).are_keys_one);
  EXPECT_EQ(meet(psk, psk, 0, one, two).refused, Refused::wrong_secret);
}

TEST_F(HandshakeTest, AFirstMessageOfAnyLengthIsReadOrRefused) {
  RandomSource random = RandomSource::of_seed(1);
  const Keyring psk = Keyring::of_secrets({secret(1)});
  const Keyring pair = Keyring::of_static_keys({secret(2)}, knowing("10.0.0.1", secret(1)));
  const Keyring initiator_of_pair = Keyring::of_static_keys({secret(1)}, knowing("10.0.0.2", secret(2)));
  std::array<std::byte, kPayload> payload{};
  for (const auto& [initiators, responders] : {std::pair(&psk, &psk), std::pair(&initiator_of_pair, &pair)}) {
    std::vector<std::byte> message;
    const auto is_read = [&](Bytes bytes, std::size_t& length) {
      return Handshake::answer(*responders, kOne, {}, random, bytes, payload, length).has_value();
    };
    for (std::size_t said_bytes = 0; said_bytes <= kPayload + 1; ++said_bytes) {
      std::vector<std::byte> said(said_bytes);
      for (std::size_t i = 0; i < said_bytes; ++i) said[i] = static_cast<std::byte>(said_bytes + i);
      auto initiator = Handshake::begin(*initiators, kTwo, 0, {}, random);
      ASSERT_TRUE(initiator);
      message.resize(said_bytes + initiator->overhead(0));
      ASSERT_TRUE(initiator->write(said, message.data()));
      std::size_t length = 1000;
      payload = {};
      ASSERT_EQ(is_read(message, length), said_bytes <= kPayload) << said_bytes << ": there is room for " << kPayload;
      if (said_bytes > kPayload) continue;
      EXPECT_EQ(length, said_bytes);
      EXPECT_TRUE(std::equal(said.begin(), said.end(), payload.begin())) << said_bytes;
      // A byte more, a byte less, or another byte: no such message was written.
      std::size_t none = 0;
      EXPECT_FALSE(is_read(Bytes(message).first(message.size() - 1), none)) << said_bytes;
      message.back() ^= std::byte{1};
      EXPECT_FALSE(is_read(message, none)) << said_bytes;
      message.back() ^= std::byte{1};
      message.push_back(std::byte{});
      EXPECT_FALSE(is_read(message, none)) << said_bytes;
    }
    for (std::size_t cut = 0; cut < message.size(); ++cut) {
      std::size_t none = 0;
      EXPECT_FALSE(is_read(Bytes(message).first(cut), none)) << cut;
    }
  }
  std::size_t length_read = 0;
  for (std::size_t length = 0; length < 300; ++length) {
    for (const int kind : {0, 1, 2}) {
      std::vector<std::byte> message(length, std::byte{9});
      if (length != 0) message[0] = static_cast<std::byte>(kind);
      EXPECT_FALSE(Handshake::answer(psk, kOne, {}, random, message, payload, length_read));
      EXPECT_FALSE(Handshake::answer(pair, kOne, {}, random, message, payload, length_read));
    }
  }
}

}  // namespace
}  // namespace fairlead::seal
