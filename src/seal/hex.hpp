#pragma once
// Keys as text: two hexadecimal digits per byte.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace fairlead::seal {

std::string to_hex(std::span<const std::byte> bytes);

/// Fills `bytes`; returns false if the text is not exactly that many pairs of digits.
[[nodiscard]] bool from_hex(std::string_view text, std::span<std::byte> bytes);

}  // namespace fairlead::seal
