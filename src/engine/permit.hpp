#pragma once
// Permission to write one message to a range of memory. It results from matching a posted buffer, or from checking a
// key, an answer, or a place in the segment. Only Operation::permit() and ActivePort::permit() create one, within their
// memory. Data of peers reaches applications' memory only through a permit.

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/copy_short.hpp"
#include "base/ensure.hpp"
#include "base/scatter.hpp"

namespace fairlead::engine {

class ActivePort;
struct Operation;

class Permit {
 public:
  /// `at` is the offset in the message.
  [[gnu::always_inline]] void write(std::uint64_t at, std::span<const std::byte> bytes) const {
    check(at, bytes.size());
    if (memory_.size() != 1) [[unlikely]]
      return base::scatter_write(memory_, offset_ + at, bytes);
    if (!bytes.empty())
      base::copy_short(static_cast<std::byte*>(memory_[0].iov_base) + offset_ + at, bytes.data(), bytes.size());
  }

 private:
  friend class ActivePort;
  friend struct Operation;

  Permit(std::span<const iovec> memory, std::uint64_t offset, std::uint64_t size)
      : memory_(memory), offset_(offset), size_(size) {}
  [[gnu::always_inline]] void check(std::uint64_t at, std::uint64_t bytes) const {
    ENSURE(at <= size_ && bytes <= size_ - at, "{} bytes at {} for a permit for {}", bytes, at, size_);
  }

  std::span<const iovec> memory_;
  std::uint64_t offset_, size_;
};

}  // namespace fairlead::engine
