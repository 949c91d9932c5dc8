// Writes and reads of reliable flows in memory of an engine of this host that lies outside what it shows us, by system
// calls (shm/cross_memory.hpp), so that nobody there has to run.
//
// All peers of the owner can write to the tables in its arena, so nothing of them is believed here: flow and region are
// looked up in the owner's own records. We are its reader meanwhile, which the page of the two tells and nobody else
// can change: what it withdraws before we look we find withdrawn, and for what we have begun it waits.
//
// If a call fails the request is sent: the responder does all of it (again), or says what is wrong.

#include <array>
#include <cstddef>

#include "qp/flows.hpp"
#include "shm/shared_tables.hpp"

namespace fairlead::qp {

shm::OwnedRecords* Flows::owned_records() {
  return shm_transport() != nullptr ? reinterpret_cast<shm::OwnedRecords*>(shm_transport()->connections().records())
                                    : nullptr;
}

/// False: it has to be sent, though some of it may have been written.
bool Flows::carry_out_by_calls(const Flow& flow, const SendEntry& entry, shm::Connection& peer,
                               std::span<const iovec> pieces) {
  // Whoever looks at his ring by himself is quicker there.
  const bool is_awake = peer.other->is_watching.load(std::memory_order_relaxed) != 0;
  const std::uint64_t most = is_awake ? bounds_.cma_awake_max : bounds_.cma_max;
  if (!peer.process.is_reached() || entry.length > most) return false;
  const auto at = look_up(flow, entry, peer);
  if (!at) return false;
  const bool is_done =
      entry.is_read() ? peer.process.read(pieces, *at, entry.length) : peer.process.write(*at, pieces, entry.length);
  if (!is_done) {
    ++counters_.calls_failed;
    return false;
  }
  ++(entry.is_read() ? counters_.reads_by_calls : counters_.writes_by_calls);
  return true;
}

/// Its address there, if flow and region permit it now.
std::optional<std::uint64_t> Flows::look_up(const Flow& flow, const SendEntry& entry, shm::Connection& peer) {
  const std::uint32_t slot = entry.rkey >> 8, place = flow.attributes.dest_qp_num % shm::SharedTables::kFlows;
  if (slot >= shm::SharedTables::kRegions) return std::nullopt;
  std::array<shm::SharedRecord<shm::SharedFlow>::Image, 2> flows;
  std::array<shm::SharedRecord<shm::SharedRegion>::Image, 2> regions;
  const std::uint64_t flow_at = offsetof(shm::OwnedRecords, flows) + sizeof flows[0] * place;
  const std::uint64_t region_at = offsetof(shm::OwnedRecords, regions) + sizeof regions[0] * slot;
  const auto bytes_of = [](auto& image) { return std::as_writable_bytes(std::span(image)); };
  const std::array<shm::CrossRecord, 4> records{{{flow_at, bytes_of(flows[0])},
                                                 {region_at, bytes_of(regions[0])},
                                                 {flow_at, bytes_of(flows[1])},
                                                 {region_at, bytes_of(regions[1])}}};
  if (!peer.process.look(records)) {
    ++counters_.calls_failed;
    return std::nullopt;
  }
  shm::SharedFlow there;
  shm::SharedRegion region;
  if (!shm::SharedRecord<shm::SharedFlow>::read(flows[0], flows[1], there) ||
      !shm::SharedRecord<shm::SharedRegion>::read(regions[0], regions[1], region)) {
    return std::nullopt;
  }
  return find_place(flow, entry, there, region);
}

/// Where what is read goes to; false if it may not.
bool Flows::gather_targets(Flow& flow, std::uint32_t number, iovec* pieces, std::uint32_t& count) const {
  count = 0;
  for (const verbs::Sge& sge : flow.sges_of(number)) {
    if (sge.length == 0) continue;
    const Permit found = regions_.locate(sge.lkey, flow.plan.domain, sge.addr, sge.length, verbs::access::local_write);
    if (found.is_refused()) return false;
    pieces[count++] = found.range();
  }
  return true;
}

}  // namespace fairlead::qp
