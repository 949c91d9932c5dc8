#pragma once
// Files of secret keys, one per line: `psk KEY` or `x25519-secret KEY`, KEY of 64 hexadecimal digits. The first key is
// used, all are accepted. So a key is replaced in three steps: append the new one everywhere, make it the first
// everywhere, remove the old one.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fairlead/error.hpp>

#include "seal/secret.hpp"

namespace fairlead::seal {

enum class KeyKind : std::uint8_t { pre_shared, x25519 };

/// Reads at least one key, all of this kind. Only the owner may have access to the file (base/owned_file.hpp).
Result<std::vector<Key>> read_key_file(const std::string& path, KeyKind kind);
Result<std::vector<Key>> parse_key_file(std::string_view text, std::string_view path, KeyKind kind);

/// Returns the line for a key file. The caller has to wipe it.
std::string key_file_line(const Key& key, KeyKind kind);

}  // namespace fairlead::seal
