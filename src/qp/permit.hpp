#pragma once
// The right to a range of registered memory. Only RegionTable::locate() makes one, after it has checked key, protection
// domain, bounds and rights; and what a peer sends gets into registered memory through a permit alone. So nothing is
// written whose right to be there was not checked. It is good for the call that asked for it: a region may go at any
// time, so nobody keeps one.
//
// Memory of a region of the whole address space may even go during the call. A permit for it is checked: the kernel
// copies, and nobody follows the address. It permits no direct bytes, so that ordinary permits need no question more.

#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <fairlead/verbs/types.hpp>

#include "base/checked_memory.hpp"
#include "base/copy_short.hpp"
#include "base/ensure.hpp"
#include "base/mapped_memory.hpp"

namespace fairlead::qp {

class Permit {
 public:
  /// Of nothing.
  Permit() = default;

  bool is_refused() const { return at_ == nullptr; }
  /// Why, if it is refused.
  verbs::Cause cause() const { return cause_; }
  /// The region's, with its epoch, for whoever holds it.
  std::uint32_t slot() const { return slot_; }
  /// Whether it is followed by the kernel alone.
  bool is_checked() const { return checked_ != 0; }
  /// To be read, unless it is checked.
  const std::byte* at() const { return at_; }
  /// For whoever reads it later, or writes to it by a system call.
  iovec range() const { return {at_, length_ + checked_}; }

  /// They may overlap with what is there. False if it has gone.
  [[nodiscard]] bool write(std::span<const std::byte> bytes) const {
    if (bytes.size() > length_) [[unlikely]]
      return write_checked(0, bytes);
    constexpr std::size_t kWordLeast = 4, kWordsMost = 32;  // such are read as a whole before they are written
    if (bytes.size() >= kWordLeast && bytes.size() <= kWordsMost) {
      base::copy_short(at_, bytes.data(), bytes.size());
    } else if (!bytes.empty()) {
      std::memmove(at_, bytes.data(), bytes.size());
    }
    return true;
  }
  /// Its last byte, when all else is there: a program may spin on it. False if it has gone.
  [[nodiscard]] bool store_last(std::byte value) const {
    if (length_ == 0) [[unlikely]] {
      std::atomic_thread_fence(std::memory_order_release);
      return write_checked(checked_ - 1, {&value, 1});
    }
    std::atomic_ref(at_[length_ - 1]).store(value, std::memory_order_release);
    return true;
  }
  /// For an atomic operation; null if it has gone. The kernel has none, so checked memory is only asked for beforehand.
  std::uint64_t* word() const {
    if (sizeof(std::uint64_t) > length_ && !is_word_there()) [[unlikely]]
      return nullptr;
    return reinterpret_cast<std::uint64_t*>(at_);
  }

 private:
  friend class RegionTable;

  explicit Permit(verbs::Cause cause) : cause_(cause) {}
  Permit(std::byte* at, std::uint64_t length, std::uint32_t slot) : at_(at), length_(length), slot_(slot) {}
  static Permit checked(std::byte* at, std::uint64_t length, std::uint32_t slot) {
    Permit permit(at, 0, slot);
    permit.checked_ = length;
    return permit;
  }
  void check(std::uint64_t bytes) const {
    ENSURE(bytes <= checked_, "{} bytes for a permit for {}", bytes, length_ + checked_);
  }
  [[gnu::noinline]] bool write_checked(std::uint64_t offset, std::span<const std::byte> bytes) const {
    check(bytes.size());
    return base::write_checked(at_ + offset, bytes.data(), bytes.size());
  }
  [[gnu::noinline]] bool is_word_there() const {
    check(sizeof(std::uint64_t));
    return base::probe_memory(at_, sizeof(std::uint64_t), true) == 0;
  }

  std::byte* at_ = nullptr;
  std::uint64_t length_ = 0;   // that may be followed
  std::uint64_t checked_ = 0;  // that may not
  std::uint32_t slot_ = 0;
  verbs::Cause cause_ = verbs::Cause::none;
};

}  // namespace fairlead::qp
