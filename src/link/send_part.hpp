#pragma once
// One of several messages to the same port that are submitted together.

#include <sys/uio.h>

#include <cstdint>
#include <span>

namespace fairlead::link {

/// The fields in which such messages differ.
struct SendPart {
  std::span<const iovec> memory;
  std::uint64_t length = 0;  // bytes of the memory, from its start
  std::uint64_t cookie = 0;
};

}  // namespace fairlead::link
