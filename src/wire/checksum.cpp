#include "wire/checksum.hpp"

#include <isa-l/crc.h>

namespace fairlead::wire {

void Checksum::add(std::span<const std::byte> bytes) {
  // isa-l does neither of the two inversions of the standard, and reads only, though its argument is not const.
  auto* begin = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(bytes.data()));
  register_ = crc32_iscsi(begin, static_cast<int>(bytes.size()), register_);
}

void Checksum::add(std::span<const iovec> pieces) {
  for (const iovec& piece : pieces) add({static_cast<const std::byte*>(piece.iov_base), piece.iov_len});
}

}  // namespace fairlead::wire
