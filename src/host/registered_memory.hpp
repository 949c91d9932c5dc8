#pragma once
// Memory of an application that host engines reach: one sealed memfd of the process, in which regions lie from the
// beginning, or to which their pages are moved in place (shm/remapped_ranges.hpp). Whole pages are moved: a host
// engine, and nobody else, could also see what lies before and behind the region in its first and last one.
//
// Any thread.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <fairlead/error.hpp>

#include "host/pair_layout.hpp"
#include "shm/arena.hpp"
#include "shm/remapped_ranges.hpp"

namespace fairlead::host {

/// Where a region lies in it: behind so many bytes of these pieces, put together.
struct RegisteredPlace {
  std::uint64_t skipped = 0;
  std::vector<MemoryPiece> pieces;
  std::vector<std::uint32_t> remaps;  // that it uses
};

class RegisteredMemory {
 public:
  /// There is one: memory that is registered at several engines lies in one place.
  static Result<std::shared_ptr<RegisteredMemory>> of_process();

  int descriptor() const noexcept { return arena_.descriptor(); }

  /// not_supported: it cannot be moved now, and why.
  Result<RegisteredPlace> take(std::span<std::byte> range);
  void release(const RegisteredPlace& place);
  std::span<std::byte> allocate(std::uint64_t bytes) { return remapped_.allocate(bytes); }
  void free(std::span<std::byte> memory) { remapped_.free(memory); }
  std::uint64_t moved_bytes() const noexcept { return remapped_.bytes(); }

 private:
  explicit RegisteredMemory(shm::Arena arena) : arena_(std::move(arena)), remapped_(arena_) {}

  shm::Arena arena_;
  shm::RemappedRanges remapped_;
};

}  // namespace fairlead::host
