#pragma once
// The right to a range of registered memory. Only RegionTable::locate() makes one, after it has checked key, protection
// domain, bounds and rights; and what a peer sends gets into registered memory through a permit alone. So nothing is
// written whose right to be there was not checked. It is good for the call that asked for it: a region may go at any
// time, so nobody keeps one.

#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <fairlead/verbs/types.hpp>

#include "base/copy_short.hpp"
#include "base/ensure.hpp"

namespace fairlead::qp {

class Permit {
 public:
  /// Of nothing.
  Permit() = default;

  bool is_refused() const { return at_ == nullptr; }
  /// Why, if it is refused.
  verbs::Cause cause() const { return cause_; }
  /// Of the region, for whoever holds it.
  std::uint32_t slot() const { return slot_; }
  /// To be read.
  const std::byte* at() const { return at_; }
  /// For whoever reads it later, or writes to it by a system call.
  iovec range() const { return {at_, length_}; }

  /// They may overlap with what is there.
  void write(std::span<const std::byte> bytes) const {
    check(bytes.size());
    constexpr std::size_t kWordLeast = 4, kWordsMost = 32;  // such are read as a whole before they are written
    if (bytes.size() >= kWordLeast && bytes.size() <= kWordsMost)
      return base::copy_short(at_, bytes.data(), bytes.size());
    if (!bytes.empty()) std::memmove(at_, bytes.data(), bytes.size());
  }
  /// Its last byte, when all else is there: a program may spin on it.
  void store_last(std::byte value) const {
    check(1);
    std::atomic_ref(at_[length_ - 1]).store(value, std::memory_order_release);
  }
  std::atomic_ref<std::uint64_t> word() const {
    check(sizeof(std::uint64_t));
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(at_));
  }

 private:
  friend class RegionTable;

  explicit Permit(verbs::Cause cause) : cause_(cause) {}
  Permit(std::byte* at, std::uint64_t length, std::uint32_t slot) : at_(at), length_(length), slot_(slot) {}
  void check(std::uint64_t bytes) const { ENSURE(bytes <= length_, "{} bytes for a permit for {}", bytes, length_); }

  std::byte* at_ = nullptr;
  std::uint64_t length_ = 0;
  std::uint32_t slot_ = 0;
  verbs::Cause cause_ = verbs::Cause::none;
};

}  // namespace fairlead::qp
