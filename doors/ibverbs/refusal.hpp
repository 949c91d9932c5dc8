#pragma once
// Why a call was refused. A program sees only an errno; the log has the reason and the remedy.

#include <cstddef>
#include <string_view>

namespace fairlead::ibverbs {

/// Logs a warning, once for each text and process. Beyond kRefusalsNoted texts it logs nothing.
void note_refusal(std::string_view text) noexcept;
inline constexpr std::size_t kRefusalsNoted = 64;

/// Does the same, and returns null with this errno.
std::nullptr_t refuse(int code, std::string_view text) noexcept;

}  // namespace fairlead::ibverbs
