#include "host/served_memory.hpp"

#include <ranges>
#include <string>

#include <fmt/format.h>

#include "host/map_place.hpp"
#include "host/pair_refusals.hpp"

namespace fairlead::host {
namespace {

constexpr std::uint32_t kAccess = verbs::access::local_write | verbs::access::remote_write |
                                  verbs::access::remote_read | verbs::access::remote_atomic | verbs::access::mw_bind |
                                  verbs::access::zero_based | verbs::access::huge_pages | verbs::access::optional_range;
constexpr std::uint64_t kPageBytes = 4096;

}  // namespace

// Regions ------------------------------------------------------------------------------------------------------------

/// Checks a call and returns the plan. `region` receives the resources that it needs. It replaces one of so many bytes.
Result<qp::RegionPlan> ServedMemory::plan_of(const PairCall& call, Pieces pieces, Region& region,
                                             std::uint64_t replaced) const {
  const bool is_joined = pieces.size() > 1;
  std::uint64_t bytes = 0;
  for (const MemoryPiece& piece : pieces) {
    if (piece.offset > shared_.bytes || piece.length == 0 || piece.length > shared_.bytes - piece.offset ||
        (is_joined && (piece.offset % kPageBytes != 0 || piece.length % kPageBytes != 0)))
      return senseless("a memory region");
    bytes += piece.length;
  }
  if (call.skipped > bytes || call.length > bytes - call.skipped || call.length == 0 || (call.access & ~kAccess) != 0)
    return senseless("a memory region");
  const std::uint64_t others = bytes_ - replaced;
  if (most_ > 0 && (others > most_ || bytes > most_ - others)) {
    return refused(
        Status::no_memory,
        fmt::format("memory region of {} bytes, besides {} of this process: its rule at the host engine lets "
                    "it register {} (memory=)",
                    bytes, others, most_));
  }
  region.bytes = bytes;
  region.skipped = call.skipped;
  region.length = call.length;
  region.parts.assign(pieces.begin(), pieces.end());
  qp::RegionPlan plan{
      .base = nullptr, .length = call.length, .iova = call.iova, .access = call.access, .is_foreign = true};
  if (!is_joined) {
    plan.base = shared_.memory.head() + pieces[0].offset + call.skipped;
    return plan;
  }
  auto joined = join(pieces, bytes);
  if (!joined) return std::unexpected(std::move(joined.error()));
  region.joined = std::move(*joined);
  region.pieces = static_cast<std::uint32_t>(pieces.size());
  plan.base = region.joined.begin() + call.skipped;
  return plan;
}

Result<JoinedMemory> ServedMemory::join(Pieces pieces, std::uint64_t bytes) const {
  if (joined_pieces_ + pieces.size() > kJoinedPiecesMax) {
    return refused(Status::no_memory,
                   fmt::format("memory region of {} pieces: the host engine maps {} for one process; align regions to "
                               "pages, or allocate them by MemoryRegion::allocate()",
                               pieces.size(), kJoinedPiecesMax));
  }
  if (bytes > kRegisteredBytesMax - joined_bytes_) {
    return refused(Status::no_memory,
                   fmt::format("memory region of {} pieces and {} bytes, besides {} of such regions: the host engine "
                               "maps {} bytes for one process",
                               pieces.size(), bytes, joined_bytes_, kRegisteredBytesMax));
  }
  return JoinedMemory::map(shared_.file.get(), pieces);
}

void ServedMemory::count(const Region& region) {
  bytes_ += region.bytes;
  joined_pieces_ += region.pieces;
  if (region.pieces > 0) joined_bytes_ += region.bytes;
}

void ServedMemory::forget(const Region& region) {
  bytes_ -= region.bytes;
  joined_pieces_ -= region.pieces;
  if (region.pieces > 0) joined_bytes_ -= region.bytes;
}

Result<PairAnswer> ServedMemory::add_region(const PairCall& call, Pieces pieces) {
  if (regions_.size() >= kPairRegionsMax) {
    return refused(
        Status::no_memory,
        fmt::format("this process has {} memory regions at the host engine, the most one may have", kPairRegionsMax));
  }
  MapPlace place(regions_);
  Region region{.domain = call.domain, .joined = {}};
  auto plan = plan_of(call, pieces, region);
  if (!plan) return std::unexpected(std::move(plan.error()));
  plan->domain = domains_.enter(region.domain);
  const auto key = core_.add_region(*plan);
  if (!key) {
    domains_.leave(region.domain);
    return std::unexpected(key.error());
  }
  count(region);
  place.fill(*key, std::move(region));
  PairAnswer answer;
  answer.key = *key;
  return answer;
}

Result<qp::Withdrawal> ServedMemory::begin_change_region(const PairCall& call, Pieces pieces, Region& before) {
  const auto found = regions_.find(call.key);
  if (found == regions_.end()) return stale("memory region");
  Region region{.domain = call.domain, .joined = {}};
  auto plan = plan_of(call, pieces, region, found->second.bytes);
  if (!plan) return std::unexpected(std::move(plan.error()));
  plan->domain = domains_.enter(region.domain);
  qp::Withdrawal withdrawal;
  if (auto changed = core_.begin_change_region(call.key, *plan, withdrawal); !changed) {
    domains_.leave(region.domain);
    return std::unexpected(std::move(changed.error()));
  }
  count(region);
  before = std::exchange(found->second, std::move(region));
  domains_.leave(before.domain);
  return withdrawal;
}

Result<qp::Withdrawal> ServedMemory::begin_remove_region(std::uint32_t key, Region& before) {
  const auto found = regions_.find(key);
  if (found == regions_.end()) return stale("memory region");
  qp::Withdrawal withdrawal;
  const Status status = core_.begin_remove_region(key, withdrawal);
  if (status != Status::ok) return refused(status, "memory region: windows are bound to it");
  before = std::move(found->second);
  domains_.leave(before.domain);
  regions_.erase(found);
  return withdrawal;
}

std::vector<std::uint32_t> ServedMemory::keys() const {
  const auto keys = std::views::keys(regions_);
  return {keys.begin(), keys.end()};
}

// Windows ------------------------------------------------------------------------------------------------------------

Result<PairAnswer> ServedMemory::add_window(const PairCall& call) {
  if (call.type != std::to_underlying(verbs::WindowType::type_1) &&
      call.type != std::to_underlying(verbs::WindowType::type_2))
    return senseless("a memory window");
  if (windows_.size() >= kPairWindowsMax) {
    return refused(
        Status::no_memory,
        fmt::format("this process has {} memory windows at the host engine, the most one may have", kPairWindowsMax));
  }
  MapPlace place(windows_);
  const auto key = core_.add_window(static_cast<verbs::WindowType>(call.type), domains_.enter(call.domain));
  if (!key) {
    domains_.leave(call.domain);
    return std::unexpected(key.error());
  }
  place.fill(*key, call.domain);
  PairAnswer answer;
  answer.key = *key;
  return answer;
}

Result<PairAnswer> ServedMemory::remove_window(const PairCall& call) {
  const auto window = windows_.find(call.key);
  if (window == windows_.end()) return stale("memory window");
  core_.remove_window(call.key);
  domains_.leave(window->second);
  windows_.erase(window);
  return PairAnswer{};
}

Result<PairAnswer> ServedMemory::unbind_windows(const PairCall& call) {
  if (!regions_.contains(call.key)) return stale("memory region");
  core_.unbind_windows(call.key);
  return PairAnswer{};
}

void ServedMemory::remove_all_windows() {
  for (const auto& [key, domain] : std::exchange(windows_, {})) {
    core_.remove_window(key);
    domains_.leave(domain);
  }
}

}  // namespace fairlead::host
