#include "onesided/remote_memory.hpp"

#include <array>
#include <atomic>

#include "base/scatter.hpp"

namespace fairlead::onesided {
namespace {

/// Returns the place of the requested bytes according to the region's record. Returns nullopt if the queue pair or the
/// region does not permit the access.
std::optional<std::uint64_t> find_place(const RegionRequest& request, const SharedPair& pair,
                                        const SharedRegion& region) {
  if (pair.number != request.pair || pair.peer_number != request.own_pair || (pair.rights & request.right) == 0 ||
      pair.peer_port != request.from.port || pair.peer_scope != request.from.scope || pair.peer_ip != request.from.ip) {
    return std::nullopt;
  }
  if (region.key != request.key || region.domain != pair.domain || (region.access & request.right) == 0)
    return std::nullopt;
  const std::uint64_t offset = request.address - region.iova;
  if (request.address < region.iova || offset > region.length || request.length > region.length - offset ||
      offset < region.begin || offset > region.end || request.length > region.end - offset) {
    return std::nullopt;
  }
  return region.offset + (offset - region.begin);
}

bool fits(const ExposureRequest& request, std::uint64_t exposed) {
  return request.is_put ? request.length <= exposed : exposed <= request.length;
}

}  // namespace

// Regions ------------------------------------------------------------------------------------------------------------

std::byte* RemoteMemory::find_mapped(const RegionRequest& request) const noexcept {
  const std::uint32_t slot = request.key >> 8;
  SharedPair pair;
  SharedRegion region;
  if (slot >= SharedTables::kRegions || !tables().regions[slot].read(region) ||
      !tables().pairs[request.pair % SharedTables::kPairs].read(pair)) {
    return nullptr;
  }
  const auto found = find_place(request, pair, region);
  if (!found) return nullptr;
  const std::uint64_t at = *found;
  if (at > owner_.arena_bytes || request.length > owner_.arena_bytes - at || at < sizeof(SharedTables)) return nullptr;
  if (request.is_word && (request.address % 8 != 0 || at % 8 != 0)) return nullptr;
  return owner_.arena->head() + at;
}

std::optional<std::uint64_t> RemoteMemory::find_by_calls(const RegionRequest& request) noexcept {
  const std::uint32_t slot = request.key >> 8, place = request.pair % SharedTables::kPairs;
  if (slot >= SharedTables::kRegions) return std::nullopt;
  std::array<SharedRecord<SharedPair>::Image, 2> pairs;
  std::array<SharedRecord<SharedRegion>::Image, 2> regions;
  const std::uint64_t pair_at = offsetof(OwnedRecords, pairs) + sizeof pairs[0] * place;
  const std::uint64_t region_at = offsetof(OwnedRecords, regions) + sizeof regions[0] * slot;
  const auto bytes_of = [](auto& image) { return std::as_writable_bytes(std::span(image)); };
  const std::array<shm::CrossRecord, 4> records{{{pair_at, bytes_of(pairs[0])},
                                                 {region_at, bytes_of(regions[0])},
                                                 {pair_at, bytes_of(pairs[1])},
                                                 {region_at, bytes_of(regions[1])}}};
  if (!note(owner_.process.look(records))) return std::nullopt;
  SharedPair pair;
  SharedRegion region;
  if (!SharedRecord<SharedPair>::read(pairs[0], pairs[1], pair) ||
      !SharedRecord<SharedRegion>::read(regions[0], regions[1], region)) {
    return std::nullopt;
  }
  return find_place(request, pair, region);
}

bool RemoteMemory::read(std::span<const iovec> to, std::uint64_t from, std::uint64_t bytes) noexcept {
  return note(owner_.process.read(to, from, bytes));
}

bool RemoteMemory::write(std::uint64_t to, std::span<const iovec> from, std::uint64_t bytes) noexcept {
  return note(owner_.process.write(to, from, bytes));
}

// Exposures ----------------------------------------------------------------------------------------------------------

std::optional<ExposurePlace> RemoteMemory::find(const ExposureRequest& request) noexcept {
  PublishedExposure& shown = exposure(request.key);
  __builtin_prefetch(&shown, 1);  // fetches the line in exclusive state, because the claim follows
  SharedExposure seen;
  if (!shown.record.read(seen) || seen.key != request.key || seen.port != request.port ||
      (seen.is_writable != 0) != request.is_put || !fits(request, seen.length)) {
    return std::nullopt;
  }
  const std::uint64_t length = request.is_put ? request.length : seen.length;
  if (seen.offset == 0) return ExposurePlace{.length = length};
  const bool is_there = seen.offset >= sizeof(SharedTables) && seen.offset <= owner_.arena_bytes &&
                        seen.length <= owner_.arena_bytes - seen.offset && seen.length <= kCarriedOutMax;
  if (!is_there) return std::nullopt;
  return ExposurePlace{.mapped = owner_.arena->head() + seen.offset, .length = length};
}

std::optional<ExposurePlace> RemoteMemory::find_by_calls(const ExposureRequest& request) noexcept {
  // Pairs with the owner's barrier after a withdrawal: our hazard pointer is visible before we look.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  OwnedExposure owned;
  const std::uint64_t at = offsetof(OwnedRecords, exposures) + sizeof owned * (request.key % SharedTables::kExposures);
  if (!note(owner_.process.look(at, std::as_writable_bytes(std::span(&owned, 1))))) return std::nullopt;
  if (owned.key.load(std::memory_order_relaxed) != request.key || (owned.is_writable != 0) != request.is_put ||
      !fits(request, owned.length) || owned.length == 0 || owned.length > kCarriedOutMax) {
    return std::nullopt;
  }
  return ExposurePlace{.address = owned.address, .length = request.is_put ? request.length : owned.length};
}

bool RemoteMemory::copy(const ExposureRequest& request, const ExposurePlace& place,
                        std::span<const iovec> pieces) noexcept {
  if (place.mapped == nullptr) {
    const bool is_done =
        request.is_put ? write(place.address, pieces, place.length) : read(pieces, place.address, place.length);
    if (!is_done) exposure(request.key).swap(own_name(), request.key);
    return is_done;
  }
  if (request.is_put) {
    base::scatter_store(place.mapped, pieces, place.length);
  } else {
    base::scatter_write(pieces, 0, {place.mapped, place.length});
  }
  return true;
}

}  // namespace fairlead::onesided
