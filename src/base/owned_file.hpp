#pragma once
// Small files whose content matters for security. They are read only if no other user can have written them (or read
// them, for secrets). The opened file is the one that was checked.

#include <cstdint>
#include <string>
#include <string_view>

#include <fairlead/error.hpp>

namespace fairlead::base {

enum class FileTrust : std::uint8_t {
  secret,  // others may neither read nor write it
  trusted  // others may not write it
};

/// Reads a regular file of up to 1 MiB, reached without symbolic links and with a single name, that belongs to this
/// user or to root. The error tells what is wrong and how to repair it.
Result<std::string> read_owned_file(const std::string& path, FileTrust trust);

/// Creates a file that only its owner can read; an existing file is kept, and is an error.
Result<> create_secret_file(const std::string& path, std::string_view text);

/// Appends a line to such a file, in one piece.
Result<> append_to_file(const std::string& path, std::string_view line);

}  // namespace fairlead::base
