#include "qp/shared.hpp"

#include "qp/queue_pair.hpp"

namespace fairlead::qp {

base::SocketAddress Shared::address_of(const verbs::AddressVector& vector, std::uint32_t number) const {
  base::SocketAddress there = address;
  if (vector.is_global) {
    there.scope = vector.dgid[0] == 0xFE && (vector.dgid[1] & 0xC0) == 0x80 ? there.scope : 0;
    there.ip = vector.dgid;
  } else {
    there.ip[14] = static_cast<std::uint8_t>(vector.dlid >> 8);
    there.ip[15] = static_cast<std::uint8_t>(vector.dlid);
  }
  there.port = static_cast<std::uint16_t>(bounds.port_first + (number >> wire::PairPort::kIndexBits));
  return there;
}

verbs::Cause Shared::gather(QueuePair& pair, RequestNumber number, std::uint32_t rights, GatherList& list) const {
  list.clear();
  const SendEntry& entry = pair.sends[number];
  if (entry.has(verbs::send_flags::inlined)) {
    list.add(iovec{pair.sends.inlined_of(number), entry.length});
    return verbs::Cause::none;
  }
  for (const verbs::Sge& sge : pair.sends.sges_of(number)) {
    if (sge.length == 0) continue;
    const Permit found = regions.locate(sge.lkey, pair.plan.domain, sge.addr, sge.length, rights);
    if (found.is_refused()) return found.cause();
    list.add(found);
  }
  return verbs::Cause::none;
}

Status Shared::submit(QueuePair& pair, const FlightOwner& owner, link::Outgoing& message, const GatherList& list) {
  const bool is_copied = message.size <= bounds.copied_max;
  std::uint32_t slot = Flights::kNone;
  const GatherList* pieces = is_copied ? &list : flights.prepare(list, slot);
  if (pieces == nullptr) return Status::again;
  message.pieces = pieces->pieces();
  message.cookie = is_copied ? copied_cookie(owner) : flights.cookie(slot);
  const Status status = transports->submit(pair.route.peer, message, now);
  if (!is_copied && status != Status::ok) flights.release(slot);
  if (status != Status::ok || !message.wants_outcome) return status;
  if (!is_copied) flights.commit(slot, owner, pair.route.peer);
  ++pair.flights;
  return status;
}

}  // namespace fairlead::qp
