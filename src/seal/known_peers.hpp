#pragma once
// The public keys that are accepted, pinned to addresses. A file of lines, like ssh's known hosts:
//
//   10.0.0.5                 x25519 5f3a...  db1
//   10.0.1.0/24,fd00::/64    x25519 90c1...  the whole rack has one key
//
// An address may have several keys, such as the old and the new while a key is replaced. `#` begins a comment.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fairlead/error.hpp>

#include "base/address_range.hpp"
#include "seal/secret.hpp"

namespace fairlead::seal {

class KnownPeers {
 public:
  /// `path` is only used in error messages.
  static Result<KnownPeers> parse(std::string_view text, std::string_view path);

  void add(std::vector<base::AddressRange> ranges, const PublicKey& key);

  bool is_known(const base::SocketAddress& address, const PublicKey& key) const;
  /// Returns the keys of an address in turn, in the order of the file: number `turn` modulo their count. Null if there
  /// is none.
  const PublicKey* key_of(const base::SocketAddress& address, std::uint32_t turn) const;

 private:
  struct Entry {
    std::vector<base::AddressRange> ranges;
    PublicKey key;
  };
  std::vector<Entry> entries_;
};

/// Returns a line of the file.
std::string known_peers_line(std::string_view addresses, const PublicKey& key);

}  // namespace fairlead::seal
