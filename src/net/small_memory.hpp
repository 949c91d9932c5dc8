#pragma once
// Allocates memory for small buffers, many of which share a chunk. A page per buffer would waste most of the page and a
// page-table entry. All such buffers would also fall into the same few cache sets.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

namespace fairlead::net {

/// Thread-safe. Blocks outlive this object. Copies share the same state.
class SmallMemory {
 public:
  static constexpr std::uint64_t kMost = 2048;          // bytes; larger buffers get their own pages
  static constexpr std::uint64_t kChunk = 64ULL << 10;  // bytes; all blocks of a chunk have one size

  /// Returns so many zeroed bytes, or null.
  using Source = std::function<std::shared_ptr<std::byte>(std::uint64_t bytes)>;
  explicit SmallMemory(Source source) : shelves_(std::make_shared<Shelves>()) { shelves_->source = std::move(source); }

  /// Returns `size` zeroed bytes (1 to kMost), aligned to a cache line. Returns null if the source has no more. Giving
  /// back the last block of a chunk frees the chunk.
  std::shared_ptr<std::byte> take(std::uint64_t size);

 private:
  static constexpr std::uint64_t kLeast = 64;
  static constexpr std::size_t kSizes = 6;  // 64, 128, ... 2048

  struct Chunk {
    std::shared_ptr<std::byte> memory;
    std::vector<std::byte*> unused;
  };
  using Chunks = std::list<Chunk>;
  struct Shelves {
    Source source;
    std::mutex mutex;
    std::array<Chunks, kSizes> chunks;  // chunks with unused blocks come first
    void give_back(std::size_t shelf, Chunks::iterator chunk, std::byte* block);
  };

  std::shared_ptr<Shelves> shelves_;
};

}  // namespace fairlead::net
