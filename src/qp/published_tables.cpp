#include "qp/published_tables.hpp"

#include "shm/shared_tables.hpp"

namespace fairlead::qp {
namespace {

shm::SharedPair record_of(const QueuePair& pair) {
  // The first request of all tells that communication is established: it has to come as a message.
  const bool is_open = pair.can_receive() && !pair.is_closing && !pair.route.is_local &&
                       (pair.has_heard || pair.state() != verbs::QpState::rtr);
  if (!is_open) return {};
  constexpr std::uint32_t kAnswered = verbs::access::remote_read | verbs::access::remote_atomic;
  // XRC: what a request may do depends on the receive queue that it names, so it comes as a message.
  const bool is_answering = pair.plan.end == PairEnd::both;
  return {.peer_ip = pair.route.address.ip,
          .peer_scope = pair.route.address.scope,
          .peer_port = pair.route.address.port,
          .number = pair.number,
          .peer_number = pair.attributes.dest_qp_num,
          .domain = pair.plan.domain,
          .rights = !is_answering
                        ? 0
                        : pair.attributes.access_flags & (pair.attributes.max_dest_rd_atomic == 0 ? ~kAnswered : ~0U)};
}

}  // namespace

shm::SharedTables* PublishedTables::tables() const {
  shm::Arena* arena = shared_.shm_transport() != nullptr ? shared_.shm_transport()->connections().arena() : nullptr;
  return arena != nullptr ? reinterpret_cast<shm::SharedTables*>(arena->head()) : nullptr;
}

shm::OwnedRecords* PublishedTables::records() const {
  return shared_.shm_transport() != nullptr
             ? reinterpret_cast<shm::OwnedRecords*>(shared_.shm_transport()->connections().records())
             : nullptr;
}

void PublishedTables::publish(const QueuePair& pair) {
  shm::SharedTables* const arena = tables();
  if (arena == nullptr || pair.is(verbs::QpType::ud)) return;
  const shm::SharedPair record = record_of(pair);
  const std::uint32_t place = pair.number % shm::SharedTables::kPairs;
  arena->pairs[place].publish(record, publications_);
  if (shm::OwnedRecords* const own = records()) own->pairs[place].publish(record, publications_);
}

void PublishedTables::publish_region(std::uint32_t key) {
  shm::SharedTables* const arena = tables();
  if (arena == nullptr || key >> 8 >= shm::SharedTables::kRegions) return;  // peers reach the last slot by messages
  shm::SharedRegion inside, whole;
  if (shared_.regions.is_known(key)) {
    const RegionPlan& plan = shared_.regions.plan(key);
    whole = {.key = key,
             .domain = plan.domain,
             .access = plan.access,
             .iova = plan.iova,
             .length = plan.length,
             .begin = 0,
             .end = plan.length,
             .offset = reinterpret_cast<std::uintptr_t>(plan.base)};
    if (plan.arena.begin < plan.arena.end) {
      inside = whole;
      inside.begin = plan.arena.begin;
      inside.end = plan.arena.end;
      inside.offset = plan.arena.offset;
    }
  }
  arena->regions[key >> 8].publish(inside, publications_);
  if (shm::OwnedRecords* const own = records()) own->regions[key >> 8].publish(whole, publications_);
}

}  // namespace fairlead::qp
