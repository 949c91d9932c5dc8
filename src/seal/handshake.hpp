#pragma once
// A Noise handshake with keys of a keyring: chooses the key, checks the peer, names the reason of a refusal. Its first
// byte names the pattern.
//
//   initiator: Handshake::begin(), write(), read() of the answer        -> keys()
//   responder: Handshake::answer() of the first message, write()        -> keys()
//
// Both sides hash `binding`: for a handshake inside a session the hash of the previous one, otherwise nothing.

#include <expected>
#include <optional>

#include "seal/epoch_keys.hpp"
#include "seal/keyring.hpp"
#include "seal/random_source.hpp"

namespace fairlead::seal {

/// Why the responder refuses a first message. The values are sent on the wire.
enum class Refused : std::uint8_t {
  none = 0,
  other_kind = 1,    // psk at one end, x25519 at the other
  wrong_secret = 2,  // made with another pre-shared key
  wrong_key = 3,     // made for another public key than ours: the initiator's known peers are wrong
  unknown_key = 4,   // the initiator's public key is not known for its address: our known peers lack it
  not_sealed = 5,    // it has to be sealed here, and is not
  cannot_seal = 6,   // it is sealed, and this end has no key
};
inline constexpr std::size_t kRefusedKinds = static_cast<std::size_t>(Refused::cannot_seal) + 1;

/// Explains the reason, with the remedy, to the side that was refused or to the side that refuses.
enum class Teller : std::uint8_t { refused, refuser };
std::string_view to_string(Refused refused, Teller teller) noexcept;

class Handshake {
 public:
  static constexpr std::size_t kOverheadMost = 1 + NoiseHandshake::kOverheadMost;

  /// Returns nothing if no public key is known for that address. `attempt`: which of several known keys to try.
  static std::optional<Handshake> begin(const Keyring& ring, const base::SocketAddress& to, std::uint32_t attempt,
                                        Bytes binding, RandomSource& random);
  /// Bytes that a message (0 or 1) adds to its payload.
  std::size_t overhead(std::size_t message) const { return 1 + NoiseHandshake::overhead(pattern_, message); }

  /// Reads a first message; its content goes to `payload` (room for the length of the message is enough).
  static std::expected<Handshake, Refused> answer(const Keyring& ring, const base::SocketAddress& from, Bytes binding,
                                                  RandomSource& random, Bytes message, std::span<std::byte> payload,
                                                  std::size_t& payload_bytes);

  /// Returns false only if the peer's key is invalid.
  [[nodiscard]] bool write(Bytes payload, std::byte* output);
  /// Reads the answer to our first message.
  [[nodiscard]] bool read(Bytes message, std::span<std::byte> payload);

  /// Returns the ephemeral key in a first message, to recognise repeats; nothing if the message is too short.
  static std::optional<PublicKey> ephemeral_of(Bytes message);
  const PublicKey& ephemeral() const { return noise_.own_ephemeral(); }

  /// The keys, and the hash to bind the next handshake, after the last message.
  std::unique_ptr<EpochKeys> keys(AeadMaker maker) const;
  const Hash& hash() const { return noise_.hash(); }

 private:
  Handshake(NoisePattern pattern, NoiseRole role, Bytes prologue, const NoiseKeys& keys)
      : pattern_(pattern), role_(role), noise_(pattern, role, prologue, keys) {}

  NoisePattern pattern_;
  NoiseRole role_;
  NoiseHandshake noise_;
};

}  // namespace fairlead::seal
