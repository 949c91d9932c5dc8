#pragma once
// A Noise handshake with the keys of a keyring: which of them, with whom, and why not. Its first byte says the pattern.
//
//   initiator: Handshake::begin(), write(), read() of the answer        -> keys()
//   responder: Handshake::answer() of the first message, write()        -> keys()
//
// `binding` goes into both sides' hash: of a handshake inside a session the hash of the one before, else nothing.

#include <expected>
#include <optional>

#include "seal/epoch_keys.hpp"
#include "seal/keyring.hpp"
#include "seal/random_source.hpp"

namespace fairlead::seal {

/// Why the responder refuses a first message. Stable: it travels.
enum class Refused : std::uint8_t {
  none = 0,
  other_kind = 1,    // psk at one end, x25519 at the other
  wrong_secret = 2,  // made with another pre-shared key
  wrong_key = 3,     // made for another public key than ours: the initiator's known peers are wrong
  unknown_key = 4,   // the initiator's public key is not known for its address: our known peers lack it
  not_sealed = 5,    // it must be sealed here, and is not
  cannot_seal = 6,   // it is sealed, and this end has no key
};
inline constexpr std::size_t kRefusedKinds = static_cast<std::size_t>(Refused::cannot_seal) + 1;

/// What it means to either side, with the remedy.
enum class Teller : std::uint8_t { refused, refuser };
std::string_view to_string(Refused refused, Teller teller) noexcept;

class Handshake {
 public:
  static constexpr std::size_t kOverheadMost = 1 + NoiseHandshake::kOverheadMost;

  /// None if no public key is known for that address. `attempt`: where several are known they are tried in turn.
  static std::optional<Handshake> begin(const Keyring& ring, const base::SocketAddress& to, std::uint32_t attempt,
                                        Bytes binding, RandomSource& random);
  /// What a message adds to its payload.
  std::size_t overhead(std::size_t message) const { return 1 + NoiseHandshake::overhead(pattern_, message); }

  /// Reads a first message into `payload` (as long as the message is enough).
  static std::expected<Handshake, Refused> answer(const Keyring& ring, const base::SocketAddress& from, Bytes binding,
                                                  RandomSource& random, Bytes message, std::span<std::byte> payload,
                                                  std::size_t& payload_bytes);

  /// False only if the other side's key is worthless.
  [[nodiscard]] bool write(Bytes payload, std::byte* output);
  /// The answer to ours.
  [[nodiscard]] bool read(Bytes message, std::span<std::byte> payload);

  /// The ephemeral key in a first message, by which a repeated one is known; nothing if it is too short to have one.
  static std::optional<PublicKey> ephemeral_of(Bytes message);
  const PublicKey& ephemeral() const { return noise_.own_ephemeral(); }

  /// When it is over.
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
