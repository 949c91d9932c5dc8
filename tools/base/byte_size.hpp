#pragma once
// Sizes as users write them: "1500", "4K", "64M", "1G" (powers of 1024).

#include <fairlead/error.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fairlead::tools {

/// Parses a size from 1 to `largest`. An error names the text and the range.
Result<std::uint64_t> parse_byte_size(std::string_view text, std::uint64_t largest);

/// Parses a list such as "8,64K,1M", at most 64 sizes.
Result<std::vector<std::uint64_t>> parse_byte_sizes(std::string_view text, std::uint64_t largest);

/// Returns the shortest exact form: "64K" for 65536, "1500" for 1500.
std::string byte_size_text(std::uint64_t bytes);

}  // namespace fairlead::tools
