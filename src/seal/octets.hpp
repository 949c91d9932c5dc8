#pragma once
// Converts bytes to the types of the cipher libraries.

#include <cstdint>
#include <span>

#include <sys/uio.h>

#include "seal/primitives.hpp"

namespace fairlead::seal {

inline const std::uint8_t* octets(Bytes bytes) {
  return reinterpret_cast<const std::uint8_t*>(bytes.data());
}
inline std::uint8_t* octets(std::byte* bytes) {
  return reinterpret_cast<std::uint8_t*>(bytes);
}
inline Bytes piece_bytes(const iovec& piece) {
  return {static_cast<const std::byte*>(piece.iov_base), piece.iov_len};
}

}  // namespace fairlead::seal
