#pragma once
// Making keys: what `fairlead keygen` does.

#include <string>
#include <string_view>

#include "seal/key_file.hpp"

namespace fairlead::seal {

/// Makes a key file with one new key; one that exists stays as it is, and is an error. Of x25519 the answer is the line
/// for the known peers of others, else nothing.
Result<std::string> make_key_file(const std::string& path, KeyKind kind, std::string_view addresses);

/// Adds a new key behind those of an existing file.
Result<std::string> add_key(const std::string& path, KeyKind kind, std::string_view addresses);

/// The lines for the known peers of others, of all keys of a file of x25519.
Result<std::string> public_lines(const std::string& path, std::string_view addresses);

}  // namespace fairlead::seal
