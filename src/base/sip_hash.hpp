#pragma once
// SipHash-2-4 (Aumasson and Bernstein, 2012): a keyed hash of short input. Without the key nobody can predict the hash
// of an input, however many others are known, nor choose inputs that collide.

#include <cstddef>
#include <cstdint>
#include <span>

namespace fairlead::base {

struct SipKey {
  std::uint64_t low = 0, high = 0;
};

class SipHash {
 public:
  explicit SipHash(const SipKey& key) noexcept;
  /// Adds eight bytes, the lowest first.
  SipHash& add(std::uint64_t word) noexcept;
  /// Only the last call may have a number of bytes that is not a multiple of eight.
  SipHash& add(std::span<const std::byte> bytes) noexcept;
  std::uint64_t value() noexcept;

 private:
  void round() noexcept;

  std::uint64_t a_, b_, c_, d_;
  std::uint64_t tail_ = 0;  // the bytes after the last whole word
  std::uint64_t length_ = 0;
};

}  // namespace fairlead::base
