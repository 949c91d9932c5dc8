#pragma once
// What this engine seals with: its secrets, and whose public keys it believes. Read at once from the files, and read
// again when they change; a session in use keeps what its handshake was made with.

#include <string>
#include <vector>

#include "seal/key_file.hpp"
#include "seal/known_peers.hpp"

namespace fairlead::seal {

struct Keyring {
  KeyKind kind = KeyKind::pre_shared;
  std::vector<Key> keys;               // the first is used, all are accepted
  std::vector<PublicKey> public_keys;  // of x25519, in the same order
  KnownPeers peers;                    // of x25519

  static Keyring of_secrets(std::vector<Key> secrets);
  static Keyring of_static_keys(std::vector<Key> keys, KnownPeers peers);
};

/// Where it is read from.
struct KeyringFiles {
  KeyKind kind = KeyKind::pre_shared;
  std::string keys;
  std::string peers;  // of x25519

  /// "psk:FILE", "x25519:FILE" or "x25519" (`x25519` in the folder of the user's settings). The known peers are in
  /// `known_peers` beside it, unless `peers` names another file.
  static Result<KeyringFiles> parse(std::string_view text, std::string_view peers);

  /// After load_libcrypto().
  Result<Keyring> read() const;
};

}  // namespace fairlead::seal
