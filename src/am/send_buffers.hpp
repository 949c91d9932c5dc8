#pragma once
// Buffers for copies of messages being sent, in sizes of powers of two; freed ones are reused. Outstanding requests and
// owed replies bound their number.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace fairlead::am {

class SendBuffers {
 public:
  using Buffer = std::unique_ptr<std::byte[]>;

  Buffer take(std::size_t bytes) {
    auto& kept = kept_[class_of(bytes)];
    if (kept.empty()) return std::make_unique_for_overwrite<std::byte[]>(std::size_t{1} << (class_of(bytes) + kLeast));
    Buffer buffer = std::move(kept.back());
    kept.pop_back();
    return buffer;
  }
  /// `bytes` must equal the size given to take().
  void give(Buffer buffer, std::size_t bytes) {
    auto& kept = kept_[class_of(bytes)];
    if (kept.size() << (class_of(bytes) + kLeast) < kKeptMax) kept.push_back(std::move(buffer));
  }

 private:
  static constexpr unsigned kLeast = 8;                          // log2 of the smallest size
  static constexpr std::size_t kKeptMax = std::size_t{8} << 20;  // bytes of each size, plus one buffer

  static std::size_t class_of(std::size_t bytes) {
    return std::max<std::size_t>(std::bit_width(bytes - 1), kLeast) - kLeast;
  }
  std::array<std::vector<Buffer>, 33 - kLeast> kept_;
};

}  // namespace fairlead::am
