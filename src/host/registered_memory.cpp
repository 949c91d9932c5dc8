#include "host/registered_memory.hpp"

#include <cerrno>

#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "base/process_mark.hpp"
#include "host/pair_watcher.hpp"

namespace fairlead::host {

namespace {

struct OneForAll {
  std::mutex mutex;
  std::weak_ptr<RegisteredMemory> memory;
};

// The child of a fork uses none of its parent's.
constinit base::OfProcess<OneForAll> one_for_all;

}  // namespace

Result<std::shared_ptr<RegisteredMemory>> RegisteredMemory::of_process() {
  OneForAll& ours = *one_for_all;
  const std::scoped_lock lock(ours.mutex);
  if (auto memory = ours.memory.lock()) return memory;
  auto arena = shm::Arena::create(0, kRegisteredBytesMax);
  if (!arena) {
    arena.error().message += "; or FAIRLEAD_CORE=embedded";
    return std::unexpected(std::move(arena.error()));
  }
  const std::shared_ptr<RegisteredMemory> made(new RegisteredMemory(std::move(*arena)));
  ours.memory = made;
  return made;
}

Result<RegisteredPlace> RegisteredMemory::take(std::span<std::byte> range) {
  constexpr std::uintptr_t kPage = 4096;
  if (const auto offset = arena_.find(range)) return RegisteredPlace{0, {{*offset, range.size()}}, {}};
  const auto first = reinterpret_cast<std::uintptr_t>(range.data());
  const std::uintptr_t begin = first & ~(kPage - 1), end = (first + range.size() + kPage - 1) & ~(kPage - 1);
  const std::span pages(range.data() - (first - begin), end - begin);
  const AllWatchersStopped still;
  const bool is_alone = still.is_alone();
  const auto parts = remapped_.take_all(pages, is_alone);
  RegisteredPlace place{.skipped = first - begin, .pieces = {}, .remaps = {}};
  for (const shm::RangePlace& part : parts) {
    place.remaps.push_back(part.remap);
    const MemoryPiece piece{part.offset, part.end - part.begin};
    if (!place.pieces.empty() && place.pieces.back().offset + place.pieces.back().length == piece.offset) {
      place.pieces.back().length += piece.length;
    } else {
      place.pieces.push_back(piece);
    }
  }
  if (!parts.empty() && place.pieces.size() <= kMemoryPiecesMax) return place;
  for (const std::uint32_t remap : place.remaps) remapped_.release(remap, is_alone);
  const char* const why =
      !parts.empty() ? "earlier registrations have split it into more than 16 pieces: register all of it first"
      : is_alone     ? "it is no memory of the program's own (a file's, or a stack's), or more than 1 GiB, or 512 "
                       "pieces are registered"
                 : "the program has threads, so it cannot be moved to memory that both share: register it before they "
                   "start";
  return std::unexpected(
      Error{Status::not_supported, EOPNOTSUPP,
            fmt::format("memory region of {} bytes: the host engine cannot reach it, for {}; or allocate it by "
                        "MemoryRegion::allocate(), or set FAIRLEAD_CORE=embedded",
                        range.size(), why)});
}

void RegisteredMemory::release(const RegisteredPlace& place) {
  if (place.remaps.empty()) return;
  const AllWatchersStopped still;
  const bool is_alone = still.is_alone();
  for (const std::uint32_t remap : place.remaps) remapped_.release(remap, is_alone);
}

}  // namespace fairlead::host
