#pragma once
// Small files on whose content somebody's safety rests: read only if nobody else can have written them (or, of secrets,
// read them), and what is opened is what was checked.

#include <cstdint>
#include <string>
#include <string_view>

#include <fairlead/error.hpp>

namespace fairlead::base {

enum class FileTrust : std::uint8_t {
  secret,  // others may neither read nor write it
  trusted  // others may not write it
};

/// A regular file, reached by no symbolic link and by one name only, of this user or of root, up to 1 MiB. The error
/// says what is wrong with it and how to mend it.
Result<std::string> read_owned_file(const std::string& path, FileTrust trust);

/// Makes a new file that only its owner can read; an existing one is left alone, and an error.
Result<> create_secret_file(const std::string& path, std::string_view text);

/// Adds a line to one that was read, in one piece.
Result<> append_to_file(const std::string& path, std::string_view line);

}  // namespace fairlead::base
