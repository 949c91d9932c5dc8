#include "host/client_memory.hpp"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include "base/numa.hpp"

namespace fairlead::host {

Result<std::shared_ptr<ClientMemory>> ClientMemory::create() {
  const base::NearNode near(base::near_node());
  auto arena = shm::Arena::create(Layout::head_bytes(), kBytes);
  if (!arena) {
    arena.error().message += "; or FAIRLEAD_CORE=embedded";
    return std::unexpected(std::move(arena.error()));
  }
  new (arena->head()) SharedPage{};
  return std::shared_ptr<ClientMemory>(new ClientMemory(std::move(*arena)));
}

std::shared_ptr<std::byte> ClientMemory::allocate(std::shared_ptr<ClientMemory> from, std::uint64_t bytes) {
  const std::uint64_t whole = (bytes + kPage - 1) / kPage * kPage;
  ClientMemory& memory = *from;
  std::optional<std::uint64_t> offset;
  {
    const std::scoped_lock lock(memory.mutex_);
    offset = memory.arena_.take(whole);
  }
  if (!offset) return nullptr;
  return {memory.at(*offset),
          [from = std::move(from), offset = *offset, whole](std::byte*) { from->free_pages(offset, whole); }};
}

// In the child of a fork, the pages belong to the parent, which may still use them.
void ClientMemory::free_pages(std::uint64_t offset, std::uint64_t bytes) {
  if (mark_.is_inherited()) return;
  const std::scoped_lock lock(mutex_);
  arena_.give_back(offset, bytes);
}

std::size_t ClientMemory::size_class(std::uint64_t bytes) {
  return static_cast<std::size_t>(std::countr_zero(std::bit_ceil(std::max(bytes, kLeast))) - std::countr_zero(kLeast));
}

std::byte* ClientMemory::take_block(std::uint64_t bytes) {
  const std::size_t size = size_class(bytes);
  if (size >= kSizes) return nullptr;
  const std::uint64_t whole = kLeast << size;
  const std::scoped_lock lock(mutex_);
  auto& unused = unused_[size];
  if (unused.empty()) {
    const std::uint64_t chunk = std::max(whole, kChunk);
    const auto offset = arena_.take(chunk);
    if (!offset) return nullptr;
    for (std::uint64_t end = chunk; end > 0; end -= whole) unused.push_back(at(*offset + end - whole));
    if (whole >= kChunk) kept_ += whole;
  }
  std::byte* const block = unused.back();
  unused.pop_back();
  if (whole >= kChunk) kept_ -= whole;
  return block;
}

void ClientMemory::give_back_block(std::byte* block, std::uint64_t bytes) {
  const std::size_t size = size_class(bytes);
  const std::uint64_t whole = kLeast << size;
  const std::scoped_lock lock(mutex_);
  if (whole >= kChunk) {
    if (kept_ + whole > kKeptMost) return arena_.give_back(static_cast<std::uint64_t>(block - at(0)), whole);
    kept_ += whole;
  }
  unused_[size].push_back(block);
}

}  // namespace fairlead::host
