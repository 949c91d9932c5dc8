#pragma once
// Copies of data in a region of the whole address space (implicit on-demand). Such memory may be unmapped at any
// moment, also while a message refers to it. So the engine copies the data once, and the message refers to the copy.
// kMost limits all copies together; a single copy may be longer.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace fairlead::qp {

class CheckedCopies {
 public:
  static constexpr std::uint64_t kMost = 64ULL << 20;  // bytes

  bool has_room(std::uint64_t bytes) const { return held_ == 0 || (held_ <= kMost && bytes <= kMost - held_); }
  /// Returns a buffer of `bytes` bytes, freed with its last reference; null if there is no memory. The caller has
  /// checked has_room().
  std::shared_ptr<std::byte> take(std::uint64_t bytes) try {
    auto* const room = new (std::nothrow) std::byte[bytes];
    if (room == nullptr) return {};
    held_ += bytes;
    return {room, [this, bytes](const std::byte* all) {
              held_ -= bytes;
              delete[] all;
            }};
  } catch (const std::bad_alloc&) {
    return {};
  }

 private:
  std::uint64_t held_ = 0;
};

}  // namespace fairlead::qp
