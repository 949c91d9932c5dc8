// One-sided requests to an engine of the same host that shows us its memory: we carry them out by ourselves, and nobody
// there has to run. What it does not show is reached by system calls (flow_foreign.cpp). Only what certainly succeeds
// goes this way; all else is sent as a message, so that errors, events and their order come from the responder as ever.
//
// Order. A request is carried out when all before it have ended. Behind messages it waits for that, unless one of them
// is for the peer's program, which may take its time: then it is sent, too. A request that was sent once is never
// carried out here: the message may still be under way. Sequences count messages only, so the responder need not know.

#include <algorithm>
#include <atomic>
#include <cstring>

#include <fmt/format.h>

#include "base/scatter.hpp"
#include "qp/flows.hpp"
#include "shm/shared_tables.hpp"

namespace fairlead::qp {

using verbs::QpState;
using verbs::QpType;
using verbs::SendOpcode;

namespace {

std::uint32_t right_for(SendOpcode opcode) {
  if (opcode == SendOpcode::write) return verbs::access::remote_write;
  return opcode == SendOpcode::read ? verbs::access::remote_read : verbs::access::remote_atomic;
}

class Visit {
 public:
  explicit Visit(shm::Connection& peer) : peer_(peer) { peer_.enter(); }
  ~Visit() { peer_.leave(); }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

 private:
  shm::Connection& peer_;
};

}  // namespace

/// Where the request's bytes lie, as the record of the region tells places; none if the two do not permit it.
std::optional<std::uint64_t> Flows::find_place(const Flow& flow, const SendEntry& entry, const shm::SharedFlow& there,
                                               const shm::SharedRegion& region) const {
  const std::uint32_t right = right_for(entry.opcode);
  const base::SocketAddress& here = address_;
  if (there.number != flow.attributes.dest_qp_num || there.peer_number != flow.number || (there.rights & right) == 0 ||
      there.peer_port != here.port || there.peer_scope != here.scope || there.peer_ip != here.ip) {
    return std::nullopt;
  }
  if (region.key != entry.rkey || region.domain != there.domain || (region.access & right) == 0) return std::nullopt;
  const std::uint64_t offset = entry.remote_addr - region.iova;
  if (entry.remote_addr < region.iova || offset > region.length || entry.length > region.length - offset ||
      offset < region.begin || offset > region.end || entry.length > region.end - offset) {
    return std::nullopt;
  }
  return region.offset + (offset - region.begin);
}

/// Where the request's bytes lie in the peer's arena; null if not there, or it is not permitted. Holds until we leave.
std::byte* Flows::reach(const Flow& flow, const SendEntry& entry, shm::Connection& peer) const {
  const auto& tables = *reinterpret_cast<const shm::SharedTables*>(peer.arena->head());
  shm::SharedFlow there;
  shm::SharedRegion region;
  if (entry.rkey >> 8 >= shm::SharedTables::kRegions || !tables.regions[entry.rkey >> 8].read(region) ||
      !tables.flows[flow.attributes.dest_qp_num % shm::SharedTables::kFlows].read(there)) {
    return nullptr;
  }
  const auto found = find_place(flow, entry, there, region);
  if (!found) return nullptr;
  const std::uint64_t at = *found;
  if (at > peer.arena_bytes || entry.length > peer.arena_bytes - at || at < sizeof(shm::SharedTables)) return nullptr;
  if (entry.is_atomic() && (entry.remote_addr % 8 != 0 || at % 8 != 0)) return nullptr;
  return peer.arena->head() + at;
}

Flows::Direct Flows::start_direct(Flow& flow, std::uint32_t number, base::Instant now) {
  SendEntry& entry = flow.entry(number);
  if (shm_transport() == nullptr || !entry.is_one_sided() || entry.is_sent || entry.length == 0 ||
      entry.length > shm::kCarriedOutMax) {
    return Direct::none;
  }
  const bool is_first = number == flow.head;
  if (!is_first && static_cast<std::int32_t>(flow.answered_end - flow.head) > 0) return Direct::none;
  link::PeerHandle peer;
  const bool is_met = transports_->resolve(flow.peer_address, now, peer) == Status::ok;
  shm::Connection* mapped_peer = is_met && shm::Transport::has(peer) ? shm_transport()->mapped_peer(peer) : nullptr;
  if (mapped_peer == nullptr) return Direct::none;

  std::array<iovec, 32> pieces;
  std::array<std::uint32_t, 32> regions;
  std::uint32_t count = 0;
  if (!entry.is_read() && gather(flow, number, pieces.data(), regions.data(), count) != verbs::Cause::none) {
    return Direct::none;
  }
  {
    const Visit visit(*mapped_peer);
    std::byte* const there = reach(flow, entry, *mapped_peer);
    if (there != nullptr && !is_first) {
      ++counters_.direct_waits;
      return Direct::later;
    }
    if (there == nullptr) {
      if (!is_first || flow.plan.type != QpType::rc || entry.is_atomic()) return Direct::none;
      if (entry.is_read() && !gather_targets(flow, number, pieces.data(), count)) return Direct::none;
      if (!carry_out_by_calls(flow, entry, *mapped_peer, {pieces.data(), count})) return Direct::none;
    }
    flow.answered_end = number;
    ++flow.next;
    --flow.first_sequence;
    if (entry.is_atomic()) {
      ++counters_.direct_atomics;
      ++flow.reads_out;
      std::atomic_ref target(*reinterpret_cast<std::uint64_t*>(there));
      std::uint64_t before = entry.compare_add;
      if (entry.opcode == SendOpcode::fetch_add) {
        before = target.fetch_add(entry.compare_add);
      } else {
        target.compare_exchange_strong(before, entry.swap);
      }
      place_read(flow, number, 0, std::as_bytes(std::span(&before, 1)));
    } else if (entry.is_read()) {
      ++counters_.direct_reads;
      ++flow.reads_out;
      std::atomic_thread_fence(std::memory_order_acquire);
      if (there != nullptr) place_read(flow, number, 0, {there, entry.length});
    } else {
      ++counters_.direct_writes;
      if (there != nullptr) base::scatter_store(there, {pieces.data(), count}, entry.length);
    }
  }
  if (flow.plan.type == QpType::uc) {
    entry.is_done = true;
    complete_in_order(flow, now);
    return Direct::done;
  }
  if (entry.is_read()) finish_read(flow, number, now);
  take_answer(flow, number, {}, now);
  return Direct::done;
}

// The owner's side ---------------------------------------------------------------------------------------------------

shm::SharedTables* Flows::shared_tables() {
  shm::Arena* arena = shm_transport() != nullptr ? shm_transport()->connections().arena() : nullptr;
  return arena != nullptr ? reinterpret_cast<shm::SharedTables*>(arena->head()) : nullptr;
}

void Flows::show(const Flow& flow) {
  shm::SharedTables* tables = shared_tables();
  if (tables == nullptr || flow.plan.type == QpType::ud) return;
  // The first request of all tells that communication is established: it has to come as a message.
  const bool is_open =
      flow.can_receive() && !flow.is_closing && !flow.is_local && (flow.has_heard || flow.state() != QpState::rtr);
  shm::SharedFlow shown;
  if (is_open) {
    constexpr std::uint32_t kAnswered = verbs::access::remote_read | verbs::access::remote_atomic;
    shown = {.peer_ip = flow.peer_address.ip,
             .peer_scope = flow.peer_address.scope,
             .peer_port = flow.peer_address.port,
             .number = flow.number,
             .peer_number = flow.attributes.dest_qp_num,
             .domain = flow.plan.domain,
             .rights = flow.attributes.access_flags & (flow.attributes.max_dest_rd_atomic == 0 ? ~kAnswered : ~0U)};
  }
  tables->flows[flow.number % shm::SharedTables::kFlows].show(shown, shows_);
  if (shm::OwnedRecords* const owned = owned_records())
    owned->flows[flow.number % shm::SharedTables::kFlows].show(shown, shows_);
}

void Flows::show_region(std::uint32_t key) {
  shm::SharedTables* tables = shared_tables();
  if (tables == nullptr || key >> 8 >= shm::SharedTables::kRegions) return;  // peers reach the last slot by messages
  shm::SharedRegion shown, owned;
  if (regions_.is_known(key)) {
    const RegionPlan& plan = regions_.plan(key);
    owned = {.key = key,
             .domain = plan.domain,
             .access = plan.access,
             .iova = plan.iova,
             .length = plan.length,
             .begin = 0,
             .end = plan.length,
             .offset = reinterpret_cast<std::uintptr_t>(plan.base)};
    if (plan.arena.begin < plan.arena.end) {
      shown = owned;
      shown.begin = plan.arena.begin;
      shown.end = plan.arena.end;
      shown.offset = plan.arena.offset;
    }
  }
  tables->regions[key >> 8].show(shown, shows_);
  if (shm::OwnedRecords* const records = owned_records()) records->regions[key >> 8].show(owned, shows_);
}

std::string Flows::describe_direct() const {
  return fmt::format("carried out by us on this host: writes {}, reads {}, atomics {}; waited {}\n",
                     counters_.direct_writes, counters_.direct_reads, counters_.direct_atomics,
                     counters_.direct_waits) +
         fmt::format("of those by system calls: writes {}, reads {}; failed {}\n", counters_.writes_by_calls,
                     counters_.reads_by_calls, counters_.calls_failed) +
         fmt::format("short sends on this host: sent straight {}, received straight {}\n", counters_.straight_sends,
                     counters_.straight_arrivals);
}

}  // namespace fairlead::qp
