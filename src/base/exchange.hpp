#pragma once
// Two programs that are joined by a stream socket tell each other something, both at once.

#include <cstddef>
#include <span>
#include <vector>

#include <fairlead/error.hpp>

#include "base/time.hpp"

namespace fairlead::base {

/// Most bytes that one end may say.
inline constexpr std::size_t kExchangeMost = 64U << 10;

/// Sends `own` and returns what the other end sent by the same call. The socket may block or not, and stays as it is.
/// Whatever comes is bounded; errors: ETIMEDOUT at the deadline, ECONNRESET, EMSGSIZE, EPROTO, or what the kernel says.
Result<std::vector<std::byte>> exchange(int socket, std::span<const std::byte> own, Instant deadline);

}  // namespace fairlead::base
