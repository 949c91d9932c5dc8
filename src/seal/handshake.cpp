#include "seal/handshake.hpp"

#include <array>
#include <string>
#include <string_view>

namespace fairlead::seal {
namespace {

constexpr std::byte kFirstByteOfPsk{1}, kFirstByteOfStatic{2};

NoisePattern pattern_of(KeyKind kind) {
  return kind == KeyKind::pre_shared ? NoisePattern::nn_psk0 : NoisePattern::ik;
}
std::byte first_byte(NoisePattern pattern) {
  return pattern == NoisePattern::nn_psk0 ? kFirstByteOfPsk : kFirstByteOfStatic;
}

std::string prologue_of(Bytes binding) {
  std::string prologue = "fairlead seal 1";
  prologue.append(reinterpret_cast<const char*>(binding.data()), binding.size());
  return prologue;
}
Bytes bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

}  // namespace

std::string_view to_string(Refused refused, Teller teller) noexcept {
  struct Row {
    std::string_view to_refused, to_refuser;
  };
  static constexpr std::array<Row, kRefusedKinds> kRows{{
      {"nothing was refused", "nothing was refused"},
      {"it seals with another kind of key (psk or x25519): set FAIRLEAD_SEAL alike at both ends",
       "it seals with another kind of key (psk or x25519): set FAIRLEAD_SEAL alike at both ends"},
      {"it has another pre-shared key: give both ends the same file",
       "it has another pre-shared key: give both ends the same file"},
      {"its public key is not the one that our known peers have for it: correct that line here",
       "its hello was for another public key than ours: its known peers need our line (`fairlead keygen --public`)"},
      {"it does not know our public key for our address: add our line to its known peers",
       "its public key is not among our known peers for its address: add its line here"},
      {"it accepts only sealed traffic: set FAIRLEAD_SEAL here",
       "it does not seal, but must (FAIRLEAD_SEAL_REQUIRE): set FAIRLEAD_SEAL there"},
      {"it cannot seal: set FAIRLEAD_SEAL there", "it seals, but this engine has no key: set FAIRLEAD_SEAL here"},
  }};
  const auto index = static_cast<std::size_t>(refused);
  if (index >= kRows.size()) return "unknown reason";
  return teller == Teller::refused ? kRows[index].to_refused : kRows[index].to_refuser;
}

std::optional<Handshake> Handshake::begin(const Keyring& ring, const base::SocketAddress& to, std::uint32_t attempt,
                                          Bytes binding, RandomSource& random) {
  NoiseKeys keys;
  random.fill(keys.ephemeral.bytes());
  if (ring.kind == KeyKind::pre_shared) {
    keys.pre_shared = ring.keys.front();
  } else {
    const PublicKey* theirs = ring.peers.key_of(to, attempt);
    if (theirs == nullptr) return std::nullopt;
    keys.own = ring.keys.front();
    keys.other_static = *theirs;
  }
  return Handshake(pattern_of(ring.kind), NoiseRole::initiator, bytes_of(prologue_of(binding)), keys);
}

std::expected<Handshake, Refused> Handshake::answer(const Keyring& ring, const base::SocketAddress& from, Bytes binding,
                                                    RandomSource& random, Bytes message, std::span<std::byte> payload,
                                                    std::size_t& payload_bytes) {
  const NoisePattern pattern = pattern_of(ring.kind);
  const std::size_t overhead = 1 + NoiseHandshake::overhead(pattern, 0);
  if (message.empty() || message[0] != first_byte(pattern)) return std::unexpected(Refused::other_kind);
  if (message.size() < overhead || message.size() - overhead > payload.size())
    return std::unexpected(Refused::wrong_secret);
  const std::string prologue = prologue_of(binding);
  NoiseKeys keys;
  random.fill(keys.ephemeral.bytes());
  for (const Key& key : ring.keys) {
    (pattern == NoisePattern::ik ? keys.own : keys.pre_shared) = key;
    Handshake handshake(pattern, NoiseRole::responder, bytes_of(prologue), keys);
    if (!handshake.noise_.read(message.subspan(1), payload.data())) continue;
    if (pattern == NoisePattern::ik && !ring.peers.is_known(from, *handshake.noise_.other_static()))
      return std::unexpected(Refused::unknown_key);
    payload_bytes = message.size() - overhead;
    return handshake;
  }
  return std::unexpected(pattern == NoisePattern::ik ? Refused::wrong_key : Refused::wrong_secret);
}

bool Handshake::write(Bytes payload, std::byte* output) {
  output[0] = first_byte(pattern_);
  return noise_.write(payload, output + 1);
}

bool Handshake::read(Bytes message, std::span<std::byte> payload) {
  if (message.size() != payload.size() + overhead(1) || message[0] != first_byte(pattern_)) return false;
  return noise_.read(message.subspan(1), payload.data());
}

std::optional<PublicKey> Handshake::ephemeral_of(Bytes message) {
  if (message.size() < 1 + sizeof(PublicKey)) return std::nullopt;
  PublicKey key;
  std::ranges::copy(message.subspan(1, key.size()), key.begin());
  return key;
}

std::unique_ptr<EpochKeys> Handshake::keys(AeadMaker maker) const {
  return std::make_unique<EpochKeys>(noise_.split(), role_, maker);
}

}  // namespace fairlead::seal
