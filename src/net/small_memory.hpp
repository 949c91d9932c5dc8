#pragma once
// Memory of short buffers: many share a chunk. A page for each would be a page and an entry of the page table for eight
// bytes, and all would lie in the same few sets of the cache.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

namespace fairlead::net {

/// Any thread. What was taken outlives it. Copies are the same one.
class SmallMemory {
 public:
  static constexpr std::uint64_t kMost = 2048;          // bytes; what is longer is worth its pages
  static constexpr std::uint64_t kChunk = 64ULL << 10;  // bytes, of blocks of one size

  /// Gives so many zeroed bytes, or null.
  using Source = std::function<std::shared_ptr<std::byte>(std::uint64_t bytes)>;
  explicit SmallMemory(Source source) : shelves_(std::make_shared<Shelves>()) { shelves_->source = std::move(source); }

  /// `size` from 1 to kMost bytes, zeroed, aligned to a cache line; null if the source has no more. The last block of a
  /// chunk that is given back takes the chunk along.
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
    std::array<Chunks, kSizes> chunks;  // those with unused blocks first
    void give_back(std::size_t shelf, Chunks::iterator chunk, std::byte* block);
  };

  std::shared_ptr<Shelves> shelves_;
};

}  // namespace fairlead::net
