#pragma once
// Sizes as people write them: "1500", "4K", "64M", "1G" (powers of 1024).

#include <fairlead/error.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fairlead::tools {

/// 1 up to `largest`; anything else is an error that names the text and the range.
Result<std::uint64_t> parse_byte_size(std::string_view text, std::uint64_t largest);

/// "8,64K,1M", at most 64 of them.
Result<std::vector<std::uint64_t>> parse_byte_sizes(std::string_view text, std::uint64_t largest);

/// The shortest exact form: "64K" for 65536, "1500" for 1500.
std::string byte_size_text(std::uint64_t bytes);

}  // namespace fairlead::tools
