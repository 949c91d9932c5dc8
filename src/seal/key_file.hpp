#pragma once
// Files of secret keys, one a line: `psk KEY` or `x25519-secret KEY`, KEY of 64 hexadecimal digits. The first is the
// one that is used, all are accepted, so one replaces another in three steps: add the new one at the end everywhere,
// make it the first everywhere, remove the old one.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fairlead/error.hpp>

#include "seal/secret.hpp"

namespace fairlead::seal {

enum class KeyKind : std::uint8_t { pre_shared, x25519 };

/// At least one key, all of this kind. The file must be its owner's alone (base/owned_file.hpp).
Result<std::vector<Key>> read_key_file(const std::string& path, KeyKind kind);
Result<std::vector<Key>> parse_key_file(std::string_view text, std::string_view path, KeyKind kind);

/// A line of the file, wiped by nobody: for writing it.
std::string key_file_line(const Key& key, KeyKind kind);

}  // namespace fairlead::seal
