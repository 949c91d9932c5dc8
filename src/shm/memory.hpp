#pragma once
// Memory shared between two processes: a memfd that nobody can shrink, so that no access can be cut short, and nothing
// of which is left when the last of them is gone.

#include <cstddef>
#include <cstdint>
#include <span>

#include <fairlead/error.hpp>

#include "base/file_descriptor.hpp"

namespace fairlead::shm {

class Memory {
 public:
  /// The start of the file, once, and then `rings` parts of equal size, each twice in a row.
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

  /// Zeroed memory of our own. `is_there`: all of it from now on, so that no page is missing when it is touched.
  static Result<Memory> create(const Layout& layout, bool is_there = false);
  /// What another process gave: invalid if it is not exactly as long, or could shrink. The descriptor stays the
  /// caller's.
  static Result<Memory> adopt(int file, const Layout& layout);

  /// Of our own memory.
  int descriptor() const noexcept { return file_.get(); }
  std::byte* head() const noexcept { return mapping_.data(); }
  std::byte* ring(std::size_t number) const noexcept {
    return mapping_.data() + layout_.head_bytes + 2 * number * layout_.ring_bytes;
  }
  /// The other process has it too: the descriptor is not needed any more.
  void close_descriptor() noexcept { file_.reset(); }

 private:
  static Result<Memory> map(int file, const Layout& layout);

  base::FileDescriptor file_;
  std::span<std::byte> mapping_;
  Layout layout_;
};

}  // namespace fairlead::shm
