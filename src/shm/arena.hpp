#pragma once
// The memory that an engine shares with its peers on the host: one sealed, sparse memfd of fixed size. It starts with
// tables that describe its contents, whose format the engine defines. The applications' exposed memory follows. A peer
// receives the descriptor at the handshake and maps the whole file once, so nothing is handed over later.
//
// A peer can write to all of it, so the owner trusts nothing that it reads there.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include <fairlead/error.hpp>

#include "shm/memory.hpp"

namespace fairlead::shm {

class Arena {
 public:
  static constexpr std::uint64_t kBytesMost = 1ULL << 40;
  static constexpr std::uint64_t kHugePage = 2ULL << 20;

  /// Creates `bytes` zeroed bytes in all, the first `head_bytes` of which are for tables. Costs address space, not
  /// memory.
  static Result<Arena> create(std::size_t head_bytes, std::uint64_t bytes);
  /// Maps a peer's arena. Returns `invalid` if its length differs from `bytes`, or if it could shrink.
  static Result<Memory> view(int file, std::uint64_t bytes);

  int descriptor() const noexcept { return memory_.descriptor(); }
  std::uint64_t bytes() const noexcept { return bytes_; }
  std::byte* head() const noexcept { return memory_.head(); }
  /// Returns the offset of `range` in the arena, or nullopt unless all of it lies there.
  std::optional<std::uint64_t> find(std::span<const std::byte> range) const noexcept;

  /// Allocates `bytes` (whole pages) at a multiple of `alignment`. Returns their offset, or nullopt if no free place
  /// fits.
  std::optional<std::uint64_t> take(std::uint64_t bytes, std::uint64_t alignment = 4096);
  /// Populates the whole huge pages of an unused place. Returns true if the kernel provided huge pages.
  bool make_huge(std::uint64_t offset, std::uint64_t bytes) noexcept;
  /// Returns the place's memory to the kernel. Processes that still map it read zeros.
  void empty(std::uint64_t offset, std::uint64_t bytes) noexcept;
  /// Does the same as empty(), and marks the place as unused.
  void give_back(std::uint64_t offset, std::uint64_t bytes);

 private:
  Memory memory_;
  std::uint64_t bytes_ = 0;
  std::map<std::uint64_t, std::uint64_t> unused_;  // offset -> bytes; adjacent entries are merged
};

}  // namespace fairlead::shm
