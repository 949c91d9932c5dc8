#pragma once
// A handshake of the Noise family (noiseprotocol.org, revision 34), its patterns as tables:
//
//   NNpsk0   -> psk, e          both ends hold one secret
//            <- e, ee
//   IK       <- s               the initiator knows the responder's public key, and shows its own, sealed
//            -> e, es, s, ss
//            <- e, ee, se
//
// The ephemeral key is an argument, so that published vectors and one seed replay. One object, one handshake: after a
// message that could not be read it is worth nothing.

#include <optional>

#include "seal/noise_symmetric_state.hpp"

namespace fairlead::seal {

enum class NoisePattern : std::uint8_t { nn_psk0, ik };
enum class NoiseRole : std::uint8_t { initiator, responder };

struct NoiseKeys {
  Key ephemeral;                          // made for this handshake
  std::optional<Key> own;                 // IK: our static key
  std::optional<Key> pre_shared;          // NNpsk0
  std::optional<PublicKey> other_static;  // IK: the initiator brings it, the responder learns it
};

class NoiseHandshake {
 public:
  static constexpr std::size_t kMessages = 2;
  static constexpr std::size_t kKeyBytes = sizeof(PublicKey);
  /// What the longest message adds to its payload.
  static constexpr std::size_t kOverheadMost = 2 * kKeyBytes + 2 * kTagBytes;

  NoiseHandshake(NoisePattern pattern, NoiseRole role, Bytes prologue, const NoiseKeys& keys);

  /// What a message (0 the initiator's, 1 the responder's) adds to its payload.
  static std::size_t overhead(NoisePattern pattern, std::size_t message);

  /// Our message; `output` has place for its payload and overhead(). False: the other side's key is worthless.
  [[nodiscard]] bool write(Bytes payload, std::byte* output);
  /// Theirs; `payload` has place for the message's bytes without overhead().
  [[nodiscard]] bool read(Bytes message, std::byte* payload);

  bool is_over() const { return message_ == kMessages; }
  const std::optional<PublicKey>& other_static() const { return keys_.other_static; }
  const PublicKey& own_ephemeral() const { return own_ephemeral_; }

  /// When it is over.
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
