#pragma once
// Memory of an application that host engines can access: one sealed memfd per process. Regions are allocated there, or
// their pages are moved there in place (shm/remapped_ranges.hpp). Whole pages are moved, so host engines can also
// access the rest of a region's first and last page.
//
// Thread-safe.

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

/// The place of a region: `skipped` bytes into these pieces, concatenated.
struct RegisteredPlace {
  std::uint64_t skipped = 0;
  std::vector<MemoryPiece> pieces;
  std::vector<std::uint32_t> remaps;  // in use by the region
};

class RegisteredMemory {
 public:
  /// Returns the object of this process. Memory registered at several engines is moved only once.
  static Result<std::shared_ptr<RegisteredMemory>> of_process();

  int descriptor() const noexcept { return arena_.descriptor(); }

  /// Moves or finds a range. Returns `not_supported`, with the reason, if it cannot be moved now.
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
