#include "net/small_memory.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace fairlead::net {

std::shared_ptr<std::byte> SmallMemory::take(std::uint64_t size) {
  const std::uint64_t whole = std::bit_ceil(std::max(size, kLeast));
  const auto shelf = static_cast<std::size_t>(std::countr_zero(whole) - std::countr_zero(kLeast));
  std::byte* block = nullptr;
  Chunks::iterator chunk;
  {
    const std::scoped_lock lock(shelves_->mutex);
    Chunks& chunks = shelves_->chunks[shelf];
    if (chunks.empty() || chunks.front().unused.empty()) {
      auto memory = shelves_->source(kChunk);
      if (!memory) return nullptr;
      Chunk made{std::move(memory), {}};
      for (std::uint64_t end = kChunk; end > 0; end -= whole) made.unused.push_back(made.memory.get() + end - whole);
      chunks.push_front(std::move(made));
    }
    chunk = chunks.begin();
    block = chunk->unused.back();
    chunk->unused.pop_back();
    if (chunk->unused.empty()) chunks.splice(chunks.end(), chunks, chunk);
  }
  std::memset(block, 0, whole);
  return {block, [shelves = shelves_, shelf, chunk](std::byte* old) { shelves->give_back(shelf, chunk, old); }};
}

void SmallMemory::Shelves::give_back(std::size_t shelf, Chunks::iterator chunk, std::byte* block) {
  Chunk gone;  // freed after the lock is released
  const std::scoped_lock lock(mutex);
  Chunks& all = chunks[shelf];
  chunk->unused.push_back(block);
  if (chunk->unused.size() << shelf < kChunk / kLeast) {
    all.splice(all.begin(), all, chunk);
  } else {
    gone = std::move(*chunk);
    all.erase(chunk);
  }
}

}  // namespace fairlead::net
