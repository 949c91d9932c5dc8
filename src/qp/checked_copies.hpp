#pragma once
// What a region of the whole address space holds may go at any moment, and a message is read for as long as it is on
// its way. So it is copied when it is asked for, and the copy is sent. All copies together are bounded; one alone may
// be longer.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace fairlead::qp {

class CheckedCopies {
 public:
  static constexpr std::uint64_t kMost = 64ULL << 20;  // bytes

  bool has_room(std::uint64_t bytes) const { return held_ == 0 || (held_ <= kMost && bytes <= kMost - held_); }
  /// Room for so much, given back with its last user; null if there is no memory.
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
