#pragma once
// The memory that an application shares with the host engine, and who has which part of it: buffers of the
// application's own, and blocks for operations whose memory lies elsewhere, through which it is copied.

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

/// Any thread.
class ClientMemory {
 public:
  static constexpr std::uint64_t kBytes = 64ULL << 30;  // of address space; memory is taken as it is touched

  static Result<std::shared_ptr<ClientMemory>> create();

  int descriptor() const noexcept { return arena_.descriptor(); }
  std::uint64_t bytes() const noexcept { return arena_.bytes(); }
  std::byte* at(std::uint64_t offset) const noexcept { return arena_.head() + offset; }
  SharedPage& page() const noexcept { return *reinterpret_cast<SharedPage*>(arena_.head()); }
  std::span<std::byte> requests() const noexcept { return {at(Layout::requests()), Layout::requests_bytes()}; }
  std::span<std::byte> events(std::uint32_t port) const noexcept {
    return {at(Layout::events(port)), Layout::events_bytes()};
  }
  /// Where in it those bytes lie; nothing if not all of them do.
  std::optional<std::uint64_t> find(std::span<const std::byte> range) const noexcept { return arena_.find(range); }

  /// Zeroed, in whole pages; null if there is no room. It keeps the memory alive.
  static std::shared_ptr<std::byte> allocate(std::shared_ptr<ClientMemory> from, std::uint64_t bytes);

  /// For one operation: at least so many bytes, whatever they hold; null if there is no room.
  std::byte* take_block(std::uint64_t bytes);
  /// `bytes` as they were asked for.
  void give_back_block(std::byte* block, std::uint64_t bytes);

 private:
  static constexpr std::uint64_t kLeast = 64, kPage = 4096;  // bytes of a block
  static constexpr std::size_t kSizes = 34;                  // 64 B, 128 B, ...
  static constexpr std::uint64_t kChunk = 256ULL << 10;      // short blocks are cut from
  static constexpr std::uint64_t kKeptMost = 256ULL << 20;   // bytes of long blocks that are not in use

  explicit ClientMemory(shm::Arena arena) : arena_(std::move(arena)) {}
  static std::size_t size_class(std::uint64_t bytes);
  void free_pages(std::uint64_t offset, std::uint64_t bytes);

  const base::ProcessMark mark_;
  std::mutex mutex_;
  shm::Arena arena_;
  std::array<std::vector<std::byte*>, kSizes> unused_;  // blocks, by size
  std::uint64_t kept_ = 0;                              // bytes of the long ones
};

}  // namespace fairlead::host
