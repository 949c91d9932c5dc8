#pragma once
// One of several messages to the same port that are submitted at once.

#include <sys/uio.h>

#include <cstdint>
#include <span>

namespace fairlead::link {

/// What of one message is the sender's own.
struct SendPart {
  std::span<const iovec> memory;
  std::uint64_t length = 0;  // of the memory, from its start
  std::uint64_t cookie = 0;
};

}  // namespace fairlead::link
