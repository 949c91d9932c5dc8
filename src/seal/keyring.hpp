#pragma once
// The keys of this engine: its secrets, and the peers' public keys that it accepts. They are read from files, and read
// again when those change. A session keeps the keys of its own handshake.

#include <string>
#include <vector>

#include "seal/key_file.hpp"
#include "seal/known_peers.hpp"

namespace fairlead::seal {

struct Keyring {
  KeyKind kind = KeyKind::pre_shared;
  std::vector<Key> keys;               // the first is used, all are accepted
  std::vector<PublicKey> public_keys;  // x25519 only, in the same order
  KnownPeers peers;                    // x25519 only

  static Keyring of_secrets(std::vector<Key> secrets);
  static Keyring of_static_keys(std::vector<Key> keys, KnownPeers peers);
};

/// Files from which a keyring is read.
struct KeyringFiles {
  KeyKind kind = KeyKind::pre_shared;
  std::string keys;
  std::string peers;  // x25519 only

  /// Parses "psk:FILE", "x25519:FILE" or "x25519" (file `x25519` in the user's settings folder). Known peers are in
  /// `known_peers` beside it, unless `peers` names another file.
  static Result<KeyringFiles> parse(std::string_view text, std::string_view peers);

  /// Call after load_libcrypto().
  Result<Keyring> read() const;
};

}  // namespace fairlead::seal
