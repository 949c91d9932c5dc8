#pragma once
// SipHash-2-4 (Aumasson and Bernstein, 2012): a hash of short input under a key. Without the key nobody can tell what
// an input hashes to, however many others he has seen, nor choose inputs that meet.

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
  /// Eight bytes, the first one lowest.
  SipHash& add(std::uint64_t word) noexcept;
  /// Only the last call may have bytes that are no multiple of eight.
  SipHash& add(std::span<const std::byte> bytes) noexcept;
  std::uint64_t value() noexcept;

 private:
  void round() noexcept;

  std::uint64_t a_, b_, c_, d_;
  std::uint64_t tail_ = 0;  // the bytes after the last whole word
  std::uint64_t length_ = 0;
};

}  // namespace fairlead::base
