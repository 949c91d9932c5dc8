#include "qp/cma.hpp"

#include <array>
#include <cstddef>
#include <optional>

#include "qp/one_sided.hpp"
#include "shm/shared_tables.hpp"

namespace fairlead::qp {
namespace {

/// Its address there, if queue pair and region permit it now.
std::optional<std::uint64_t> look_up(Shared& shared, const QueuePair& pair, const SendEntry& entry,
                                     shm::Connection& peer) {
  const std::uint32_t slot = entry.rkey >> 8, place = pair.attributes.dest_qp_num % shm::SharedTables::kPairs;
  if (slot >= shm::SharedTables::kRegions) return std::nullopt;
  std::array<shm::SharedRecord<shm::SharedPair>::Image, 2> pairs;
  std::array<shm::SharedRecord<shm::SharedRegion>::Image, 2> regions;
  const std::uint64_t pair_at = offsetof(shm::OwnedRecords, pairs) + sizeof pairs[0] * place;
  const std::uint64_t region_at = offsetof(shm::OwnedRecords, regions) + sizeof regions[0] * slot;
  const auto bytes_of = [](auto& image) { return std::as_writable_bytes(std::span(image)); };
  const std::array<shm::CrossRecord, 4> records{{{pair_at, bytes_of(pairs[0])},
                                                 {region_at, bytes_of(regions[0])},
                                                 {pair_at, bytes_of(pairs[1])},
                                                 {region_at, bytes_of(regions[1])}}};
  if (!peer.process.look(records)) {
    ++shared.counters.calls_failed;
    return std::nullopt;
  }
  shm::SharedPair there;
  shm::SharedRegion region;
  if (!shm::SharedRecord<shm::SharedPair>::read(pairs[0], pairs[1], there) ||
      !shm::SharedRecord<shm::SharedRegion>::read(regions[0], regions[1], region)) {
    return std::nullopt;
  }
  return find_place(shared, pair, entry, there, region);
}

}  // namespace

bool carry_out_by_calls(Shared& shared, const QueuePair& pair, const SendEntry& entry, shm::Connection& peer,
                        std::span<const iovec> pieces) {
  if (!peer.may_call(entry.length, shared.bounds.cma_max, shared.bounds.cma_awake_max)) return false;
  const auto at = look_up(shared, pair, entry, peer);
  if (!at) return false;
  const bool is_read = entry.traits().has_result();
  const bool is_done =
      is_read ? peer.process.read(pieces, *at, entry.length) : peer.process.write(*at, pieces, entry.length);
  PairCounters& counters = shared.counters;
  ++(!is_done ? counters.calls_failed : is_read ? counters.reads_by_calls : counters.writes_by_calls);
  return is_done;
}

}  // namespace fairlead::qp
