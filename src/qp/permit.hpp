#pragma once
// The right to access a range of registered memory. Only RegionTable::locate() creates one, after it has checked key,
// protection domain, bounds and rights. Bytes from a peer are written to registered memory only through a permit, so no
// write is unchecked. A permit is valid during the call that asked for it, and is not stored, because a region may be
// deregistered at any time.
//
// Memory in a region of the whole address space may be unmapped even during the call. Its permit is "checked": the
// kernel copies, and no code dereferences the address. Such a permit has a length of 0 for direct access, so ordinary
// permits need no additional check.
//
// A null region has no memory. Its permit is checked, too: it discards what is written, and zeros are read from it.

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
  /// A permit for nothing.
  Permit() = default;

  bool is_refused() const { return at_ == nullptr; }
  /// The reason, if it is refused.
  verbs::Cause cause() const { return cause_; }
  /// The region's slot with its epoch, for RegionTable::hold().
  std::uint32_t slot() const { return slot_; }
  /// Returns whether only read() and write() may access the memory, not pointers.
  bool is_checked() const { return checked_ != 0; }
  /// Returns whether it is of a null region.
  bool is_null() const { return at_ == &kNull; }
  /// The first byte. It must not be dereferenced if the permit is checked.
  const std::byte* at() const { return at_; }
  /// The range, for a message that refers to it, or for a system call. Not of a null region.
  iovec range() const { return {at_, length_ + checked_}; }

  /// Copies all of a checked range. Returns false if the memory is not mapped any more.
  [[nodiscard]] bool read_checked(std::byte* to) const {
    if (is_null()) {
      std::memset(to, 0, checked_);
      return true;
    }
    return base::read_checked(to, at_, checked_);
  }
  /// Copies `bytes`, which may overlap the range. Returns false if the memory is not mapped any more.
  [[nodiscard]] bool write(std::span<const std::byte> bytes) const {
    if (bytes.size() > length_) [[unlikely]]
      return write_checked(0, bytes);
    constexpr std::size_t kWordLeast = 4, kWordsMost = 32;  // copy_short() reads all bytes before it writes
    if (bytes.size() >= kWordLeast && bytes.size() <= kWordsMost) {
      base::copy_short(at_, bytes.data(), bytes.size());
    } else if (!bytes.empty()) {
      std::memmove(at_, bytes.data(), bytes.size());
    }
    return true;
  }
  /// Stores the last byte, after all others: a program may spin on it. Returns false if the memory is not mapped any
  /// more.
  [[nodiscard]] bool store_last(std::byte value) const {
    if (length_ == 0) [[unlikely]] {
      std::atomic_thread_fence(std::memory_order_release);
      return write_checked(checked_ - 1, {&value, 1});
    }
    std::atomic_ref(at_[length_ - 1]).store(value, std::memory_order_release);
    return true;
  }
  /// Returns the address for an atomic operation; null if the memory is not mapped any more. No system call is atomic,
  /// so checked memory is only probed before the access.
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
  static Permit null(std::uint64_t length, std::uint32_t slot) { return checked(&kNull, length, slot); }
  void check(std::uint64_t bytes) const {
    ENSURE(bytes <= checked_, "{} bytes for a permit for {}", bytes, length_ + checked_);
  }
  [[gnu::noinline]] bool write_checked(std::uint64_t offset, std::span<const std::byte> bytes) const {
    check(bytes.size());
    return is_null() || base::write_checked(at_ + offset, bytes.data(), bytes.size());
  }
  [[gnu::noinline]] bool is_word_there() const {
    check(sizeof(std::uint64_t));
    return base::probe_memory(at_, sizeof(std::uint64_t), true) == 0;
  }

  inline static std::byte kNull{};  // its address stands for memory that does not exist

  std::byte* at_ = nullptr;
  std::uint64_t length_ = 0;   // bytes that may be dereferenced
  std::uint64_t checked_ = 0;  // bytes that only the kernel may access
  std::uint32_t slot_ = 0;
  verbs::Cause cause_ = verbs::Cause::none;
};

}  // namespace fairlead::qp
