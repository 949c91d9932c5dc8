#include "seal/noise_handshake.hpp"

#include <algorithm>
#include <array>

#include "base/ensure.hpp"

namespace fairlead::seal {

struct NoiseHandshake::Table {
  std::string_view name;
  bool is_responder_known;  // the initiator knows its static key before the first message
  bool has_psk;             // ephemeral keys are then mixed into the key, too
  std::array<std::span<const Token>, kMessages> messages;
};

const NoiseHandshake::Table& NoiseHandshake::table(NoisePattern pattern) {
  static constexpr std::array kPskE{Token::psk, Token::e};
  static constexpr std::array kEEe{Token::e, Token::ee};
  static constexpr std::array kEEsSSs{Token::e, Token::es, Token::s, Token::ss};
  static constexpr std::array kEEeSe{Token::e, Token::ee, Token::se};
  static constexpr Table kNnPsk0{"Noise_NNpsk0_25519_ChaChaPoly_SHA256", false, true, {kPskE, kEEe}};
  static constexpr Table kIk{"Noise_IK_25519_ChaChaPoly_SHA256", true, false, {kEEsSSs, kEEeSe}};
  return pattern == NoisePattern::ik ? kIk : kNnPsk0;
}

std::size_t NoiseHandshake::overhead(NoisePattern pattern, std::size_t message) {
  std::size_t bytes = kTagBytes;  // of the payload
  for (const Token token : table(pattern).messages[message]) {
    if (token == Token::e) bytes += kKeyBytes;
    if (token == Token::s) bytes += kKeyBytes + kTagBytes;
  }
  return bytes;
}

NoiseHandshake::NoiseHandshake(NoisePattern pattern, NoiseRole role, Bytes prologue, const NoiseKeys& keys)
    : pattern_(pattern),
      table_(table(pattern)),
      role_(role),
      state_(table_.name),
      keys_(keys),
      own_ephemeral_(public_key_of(keys.ephemeral)) {
  const bool is_initiator = role == NoiseRole::initiator;
  ENSURE(!table_.has_psk || keys_.pre_shared, "{} without a secret", table_.name);
  ENSURE(!table_.is_responder_known || (keys_.own && (!is_initiator || keys_.other_static)), "{} without its keys",
         table_.name);
  state_.mix_hash(prologue);
  if (table_.is_responder_known) state_.mix_hash(is_initiator ? *keys_.other_static : public_key_of(*keys_.own));
}

bool NoiseHandshake::mix_agreed(Token token) {
  const bool is_initiator = role_ == NoiseRole::initiator;
  const bool is_own_static = token == Token::ss || token == (is_initiator ? Token::se : Token::es);
  const bool is_other_static = token == Token::ss || token == (is_initiator ? Token::es : Token::se);
  Key shared;
  if (!agree(is_own_static ? *keys_.own : keys_.ephemeral, is_other_static ? *keys_.other_static : other_ephemeral_,
             shared)) {
    return false;
  }
  state_.mix_key(shared.bytes());
  return true;
}

std::byte* NoiseHandshake::write_token(Token token, std::byte* output, bool& is_good) {
  switch (token) {
    case Token::e:
      output = std::ranges::copy(own_ephemeral_, output).out;
      state_.mix_hash(own_ephemeral_);
      if (table_.has_psk) state_.mix_key(own_ephemeral_);
      return output;
    case Token::s:
      state_.encrypt_and_hash(public_key_of(*keys_.own), output);
      return output + kKeyBytes + kTagBytes;
    case Token::psk:
      state_.mix_key_and_hash(keys_.pre_shared->bytes());
      return output;
    default:
      is_good = is_good && mix_agreed(token);
      return output;
  }
}

const std::byte* NoiseHandshake::read_token(Token token, const std::byte* input, bool& is_good) {
  switch (token) {
    case Token::e:
      std::copy_n(input, kKeyBytes, other_ephemeral_.begin());
      state_.mix_hash(other_ephemeral_);
      if (table_.has_psk) state_.mix_key(other_ephemeral_);
      return input + kKeyBytes;
    case Token::s: {
      constexpr std::size_t kSealed = kKeyBytes + kTagBytes;
      PublicKey other;
      is_good = is_good && state_.decrypt_and_hash({input, kSealed}, other.data());
      if (is_good) keys_.other_static = other;
      return input + kSealed;
    }
    case Token::psk:
      state_.mix_key_and_hash(keys_.pre_shared->bytes());
      return input;
    default:
      is_good = is_good && mix_agreed(token);
      return input;
  }
}

bool NoiseHandshake::write(Bytes payload, std::byte* output) {
  ENSURE(message_ == static_cast<std::size_t>(role_), "a Noise message out of turn");
  bool is_good = true;
  for (const Token token : table_.messages[message_]) {
    output = write_token(token, output, is_good);
    if (!is_good) return false;
  }
  state_.encrypt_and_hash(payload, output);
  ++message_;
  return true;
}

bool NoiseHandshake::read(Bytes message, std::byte* payload) {
  ENSURE(message_ == 1 - static_cast<std::size_t>(role_), "a Noise message out of turn");
  if (message.size() < overhead(pattern_, message_)) return false;
  bool is_good = true;
  const std::byte* next = message.data();
  for (const Token token : table_.messages[message_]) {
    next = read_token(token, next, is_good);
    if (!is_good) return false;
  }
  if (!state_.decrypt_and_hash({next, message.data() + message.size()}, payload)) return false;
  ++message_;
  return true;
}

}  // namespace fairlead::seal
