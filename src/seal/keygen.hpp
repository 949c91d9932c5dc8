#pragma once
// Makes keys, for `fairlead keygen`.

#include <string>
#include <string_view>

#include "seal/key_file.hpp"

namespace fairlead::seal {

/// Makes a key file with one new key; an existing file is kept, and is an error. For x25519 returns the line for the
/// peers' known_peers, otherwise an empty text.
Result<std::string> make_key_file(const std::string& path, KeyKind kind, std::string_view addresses);

/// Appends a new key to an existing file.
Result<std::string> add_key(const std::string& path, KeyKind kind, std::string_view addresses);

/// Returns the known_peers lines of all keys in an x25519 file.
Result<std::string> public_lines(const std::string& path, std::string_view addresses);

}  // namespace fairlead::seal
