#pragma once
// The memory that an application shares with the host engine. Allocates the application's own buffers, and blocks
// through which other memory is copied.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include <fairlead/error.hpp>

#include "base/process_mark.hpp"
#include "host/layout.hpp"
#include "shm/arena.hpp"

namespace fairlead::host {

/// Thread-safe.
class ClientMemory {
 public:
  static constexpr std::uint64_t kBytes = 64ULL << 30;  // of address space; memory is allocated on first use

  static Result<std::shared_ptr<ClientMemory>> create();

  int descriptor() const noexcept { return arena_.descriptor(); }
  std::uint64_t bytes() const noexcept { return arena_.bytes(); }
  std::byte* at(std::uint64_t offset) const noexcept { return arena_.head() + offset; }
  SharedPage& page() const noexcept { return *reinterpret_cast<SharedPage*>(arena_.head()); }
  std::span<std::byte> requests() const noexcept { return {at(Layout::requests()), Layout::requests_bytes()}; }
  std::span<std::byte> events(std::uint32_t port) const noexcept {
    return {at(Layout::events(port)), Layout::events_bytes()};
  }
  /// Returns the offset of `range`, or nullopt unless all of it lies there.
  std::optional<std::uint64_t> find(std::span<const std::byte> range) const noexcept { return arena_.find(range); }

  /// Allocates zeroed memory in whole pages, which keeps `from` alive. Returns null if there is no room.
  static std::shared_ptr<std::byte> allocate(std::shared_ptr<ClientMemory> from, std::uint64_t bytes);

  /// Allocates an uninitialised block of at least `bytes` for one operation. Returns null if there is no room.
  std::byte* take_block(std::uint64_t bytes);
  /// `bytes` must equal the size given to take_block().
  void give_back_block(std::byte* block, std::uint64_t bytes);

 private:
  static constexpr std::uint64_t kLeast = 64, kPage = 4096;  // bytes of the smallest block, of a page
  static constexpr std::size_t kSizes = 34;                  // 64 B, 128 B, ...
  static constexpr std::uint64_t kChunk = 256ULL << 10;      // bytes; short blocks are cut from it
  static constexpr std::uint64_t kKeptMost = 256ULL << 20;   // bytes of unused long blocks

  explicit ClientMemory(shm::Arena arena) : arena_(std::move(arena)) {}
  static std::size_t size_class(std::uint64_t bytes);
  void free_pages(std::uint64_t offset, std::uint64_t bytes);

  const base::ProcessMark mark_;
  std::mutex mutex_;
  shm::Arena arena_;
  std::array<std::vector<std::byte*>, kSizes> unused_;  // free blocks by size
  std::uint64_t kept_ = 0;                              // bytes of the free long ones
};

}  // namespace fairlead::host
