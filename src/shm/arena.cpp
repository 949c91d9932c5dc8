#include "shm/arena.hpp"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "base/file_signals.hpp"

namespace fairlead::shm {

Result<Arena> Arena::create(std::size_t head_bytes, std::uint64_t bytes) {
  auto memory = Memory::create({.head_bytes = bytes});
  if (!memory) return std::unexpected(std::move(memory.error()));
  ::madvise(memory->head(), bytes, MADV_DONTDUMP);
  Arena arena;
  arena.memory_ = std::move(*memory);
  arena.bytes_ = bytes;
  arena.unused_[head_bytes] = bytes - head_bytes;
  return arena;
}

Result<Memory> Arena::view(int file, std::uint64_t bytes) {
  if (bytes > kBytesMost || bytes % 4096 != 0) {
    return std::unexpected(Error{Status::invalid, 0, "shared memory of a size that no engine has"});
  }
  auto memory = Memory::adopt(file, {.head_bytes = bytes});
  if (!memory) return memory;
  ::madvise(memory->head(), bytes, MADV_DONTDUMP);
  return memory;
}

std::optional<std::uint64_t> Arena::take(std::uint64_t bytes, std::uint64_t alignment) {
  const auto skipped_at = [&](std::uint64_t offset) { return (alignment - offset % alignment) % alignment; };
  const auto found = std::ranges::find_if(unused_, [&](const auto& place) {
    const std::uint64_t skipped = skipped_at(place.first);
    return place.second >= skipped && place.second - skipped >= bytes;
  });
  if (bytes == 0 || found == unused_.end()) return std::nullopt;
  const auto [first, room] = *found;
  const std::uint64_t skipped = skipped_at(first), offset = first + skipped;
  unused_.erase(found);
  if (skipped > 0) unused_[first] = skipped;
  if (room > skipped + bytes) unused_[offset + bytes] = room - skipped - bytes;
  return offset;
}

std::optional<std::uint64_t> Arena::find(std::span<const std::byte> range) const noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(range.data()), head = reinterpret_cast<std::uintptr_t>(this->head());
  if (at < head || at - head > bytes_ || range.size() > bytes_ - (at - head)) return std::nullopt;
  return at - head;
}

// By default the kernel does not use huge pages for a memfd on a page fault. It collapses populated pages on request,
// so touch each page once.
bool Arena::make_huge(std::uint64_t offset, std::uint64_t bytes) noexcept {
  constexpr int kCollapse = 25;  // MADV_COLLAPSE, since Linux 6.1
  const std::uint64_t begin = (offset + kHugePage - 1) / kHugePage * kHugePage;
  const std::uint64_t end = (offset + bytes) / kHugePage * kHugePage;
  if (begin >= end) return false;
  for (std::uint64_t page = begin; page < end; page += kHugePage)
    *reinterpret_cast<volatile std::byte*>(head() + page) = std::byte{0};
  if (::madvise(head() + begin, end - begin, kCollapse) == 0) return true;
  empty(begin, end - begin);
  return false;
}

void Arena::empty(std::uint64_t offset, std::uint64_t bytes) noexcept {
  base::change_room(memory_.descriptor(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, bytes);
}

void Arena::give_back(std::uint64_t offset, std::uint64_t bytes) {
  empty(offset, bytes);
  auto after = unused_.lower_bound(offset);
  if (after != unused_.end() && after->first == offset + bytes) {
    bytes += after->second;
    after = unused_.erase(after);
  }
  if (after != unused_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == offset) {
      before->second += bytes;
      return;
    }
  }
  unused_[offset] = bytes;
}

}  // namespace fairlead::shm
