#pragma once
// Two programs joined by a stream socket send each other a message at the same time.

#include <cstddef>
#include <span>
#include <vector>

#include <fairlead/error.hpp>

#include "base/time.hpp"

namespace fairlead::base {

/// Most bytes of one message.
inline constexpr std::size_t kExchangeMost = 64U << 10;

/// Sends `own` and returns what the other end sent by the same call. The socket may be blocking or not, and stays so.
/// Errors: ETIMEDOUT at the deadline, ECONNRESET, EMSGSIZE, EPROTO, or the kernel's.
Result<std::vector<std::byte>> exchange(int socket, std::span<const std::byte> own, Instant deadline);

}  // namespace fairlead::base
