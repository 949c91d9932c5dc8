#pragma once
// A handshake of the Noise framework (noiseprotocol.org, revision 34). Its patterns are tables:
//
//   NNpsk0   -> psk, e          both ends hold one secret
//            <- e, ee
//   IK       <- s               the initiator knows the responder's public key, and shows its own, sealed
//            -> e, es, s, ss
//            <- e, ee, se
//
// The ephemeral key is an argument, so that published vectors and seeded runs can be replayed. An object serves one
// handshake; after a message that could not be read it is useless.

#include <optional>

#include "seal/noise_symmetric_state.hpp"

namespace fairlead::seal {

enum class NoisePattern : std::uint8_t { nn_psk0, ik };
enum class NoiseRole : std::uint8_t { initiator, responder };

struct NoiseKeys {
  Key ephemeral;                          // made for this handshake
  std::optional<Key> own;                 // IK: our static key
  std::optional<Key> pre_shared;          // NNpsk0
  std::optional<PublicKey> other_static;  // IK: an argument for the initiator; the responder learns it
};

class NoiseHandshake {
 public:
  static constexpr std::size_t kMessages = 2;
  static constexpr std::size_t kKeyBytes = sizeof(PublicKey);
  /// Bytes that the longest message adds to its payload.
  static constexpr std::size_t kOverheadMost = 2 * kKeyBytes + 2 * kTagBytes;

  NoiseHandshake(NoisePattern pattern, NoiseRole role, Bytes prologue, const NoiseKeys& keys);

  /// Bytes that a message (0 the initiator's, 1 the responder's) adds to its payload.
  static std::size_t overhead(NoisePattern pattern, std::size_t message);

  /// Writes our message; `output` has room for its payload and overhead(). Returns false if the peer's key is invalid.
  [[nodiscard]] bool write(Bytes payload, std::byte* output);
  /// Reads the peer's message; `payload` has room for the message without overhead(). Returns false if it is invalid.
  [[nodiscard]] bool read(Bytes message, std::byte* payload);

  bool is_over() const { return message_ == kMessages; }
  const std::optional<PublicKey>& other_static() const { return keys_.other_static; }
  const PublicKey& own_ephemeral() const { return own_ephemeral_; }

  /// Valid after the last message.
  NoiseSymmetricState::Split split() const { return state_.split(); }
  const Hash& hash() const { return state_.hash(); }

 private:
  enum class Token : std::uint8_t { e, s, ee, es, se, ss, psk };
  struct Table;
  static const Table& table(NoisePattern pattern);

  bool mix_agreed(Token token);
  std::byte* write_token(Token token, std::byte* output, bool& is_good);
  const std::byte* read_token(Token token, const std::byte* input, bool& is_good);

  NoisePattern pattern_;
  const Table& table_;
  NoiseRole role_;
  NoiseSymmetricState state_;
  NoiseKeys keys_;
  PublicKey own_ephemeral_;
  PublicKey other_ephemeral_{};
  std::size_t message_ = 0;
};

}  // namespace fairlead::seal
