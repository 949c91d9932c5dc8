#include "qp/published_tables.hpp"

namespace fairlead::qp {
namespace {

onesided::SharedPair record_of(const QueuePair& pair) {
  // The first request in RTR raises the event "communication established", so it has to arrive as a message.
  const bool is_open = pair.can_receive() && !pair.is_closing && !pair.route.is_local &&
                       (pair.has_heard || pair.state() != verbs::QpState::rtr);
  if (!is_open) return {};
  constexpr std::uint32_t kAnswered = verbs::access::remote_read | verbs::access::remote_atomic;
  // XRC: the rights of a request depend on the receive queue that it names, so it has to arrive as a message.
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

void PublishedTables::publish(const QueuePair& pair) {
  if (!publisher_.is_seen() || pair.is(verbs::QpType::ud)) return;
  publisher_.publish_pair(pair.number % onesided::SharedTables::kPairs, record_of(pair));
}

std::uint32_t PublishedTables::rights(const QueuePair& pair) {
  return record_of(pair).rights;
}

void PublishedTables::publish_region(std::uint32_t key) {
  onesided::SharedRegion inside, whole;
  if (regions_.is_open(key)) {
    const RegionPlan& plan = regions_.plan(key);
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
  publisher_.publish_region(key >> 8, inside, whole);
}

}  // namespace fairlead::qp
