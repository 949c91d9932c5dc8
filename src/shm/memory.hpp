#pragma once
// Memory shared between two processes: a memfd of a fixed size, so no access can hit a truncated page. The kernel
// frees it with its last user.

#include <cstddef>
#include <cstdint>
#include <span>

#include <fairlead/error.hpp>

#include "base/file_descriptor.hpp"

namespace fairlead::shm {

class Memory {
 public:
  /// The file starts with a head, mapped once. Then follow `rings` parts of equal size, each mapped twice in a row.
  struct Layout {
    std::size_t head_bytes = 0;  // whole pages
    std::size_t ring_bytes = 0;  // whole pages
    std::size_t rings = 0;
    std::size_t file_bytes() const { return head_bytes + rings * ring_bytes; }
  };

  Memory() = default;
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) noexcept;
  ~Memory();

  /// Creates zeroed memory. `is_there` populates all pages now, so that none faults later.
  static Result<Memory> create(const Layout& layout, bool is_there = false);
  /// Maps a descriptor from another process. Returns `invalid` if its length is wrong or could change, or if seals
  /// could be added. The caller keeps the descriptor.
  static Result<Memory> adopt(int file, const Layout& layout);

  /// Valid only for memory from create().
  int descriptor() const noexcept { return file_.get(); }
  std::byte* head() const noexcept { return mapping_.data(); }
  std::byte* ring(std::size_t number) const noexcept {
    return mapping_.data() + layout_.head_bytes + 2 * number * layout_.ring_bytes;
  }
  /// Closes the descriptor when the other process has the memory, too.
  void close_descriptor() noexcept { file_.reset(); }

 private:
  static Result<Memory> map(int file, const Layout& layout);

  base::FileDescriptor file_;
  std::span<std::byte> mapping_;
  Layout layout_;
};

}  // namespace fairlead::shm
