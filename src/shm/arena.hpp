#pragma once
// Memory that an engine shows to its peers of this host: one sealed memfd of fixed, sparse size. First come tables that
// tell what is in it (their meaning is the engine's affair), then what applications expose. A peer gets the descriptor
// when the two meet and maps the whole file once, so that nothing has to be handed over later.
//
// A peer can write to all of it, so the owner believes nothing that it reads there.

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

  /// `bytes` in all, of which the first `head_bytes` are for tables; zeroed. Costs address space, not memory.
  static Result<Arena> create(std::size_t head_bytes, std::uint64_t bytes);
  /// A peer's, mapped: invalid if it is not exactly so long, or could shrink.
  static Result<Memory> view(int file, std::uint64_t bytes);

  int descriptor() const noexcept { return memory_.descriptor(); }
  std::uint64_t bytes() const noexcept { return bytes_; }
  std::byte* head() const noexcept { return memory_.head(); }
  /// Where in it those bytes lie; none if not all of them do.
  std::optional<std::uint64_t> find(std::span<const std::byte> range) const noexcept;

  /// Where so many bytes (whole pages) are unused, at a multiple of `alignment`; none if there is no such place.
  std::optional<std::uint64_t> take(std::uint64_t bytes, std::uint64_t alignment = 4096);
  /// Takes memory for the whole huge pages of a place now, in huge pages if the kernel has them to give: then true. The
  /// place is unused.
  bool make_huge(std::uint64_t offset, std::uint64_t bytes) noexcept;
  /// Its memory goes back to the kernel; what has it still mapped reads zeros.
  void empty(std::uint64_t offset, std::uint64_t bytes) noexcept;
  /// As empty(), and the place may be taken again.
  void give_back(std::uint64_t offset, std::uint64_t bytes);

 private:
  Memory memory_;
  std::uint64_t bytes_ = 0;
  std::map<std::uint64_t, std::uint64_t> unused_;  // offset, bytes; mapped_peers are one
};

}  // namespace fairlead::shm
