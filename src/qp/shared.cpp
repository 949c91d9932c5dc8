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

/// Copies the range to the list's own copy, at `offset`. The first call allocates the copy, with `bytes` bytes.
[[gnu::noinline]] verbs::Cause Shared::copy(const Permit& place, std::uint64_t bytes, std::uint64_t offset,
                                            GatherList& list) {
  const std::uint64_t length = place.range().iov_len;
  if (list.copy() == nullptr) {
    if (!copies.has_room(bytes)) return kNoRoomToCopy;
    list.keep(copies.take(bytes));
    if (list.copy() == nullptr) return verbs::Cause::peer_failed;
  }
  std::byte* const to = list.copy() + offset;
  if (!place.read_checked(to)) return verbs::Cause::out_of_range;
  list.add(iovec{to, length});
  return verbs::Cause::none;
}

verbs::Cause Shared::gather(const Permit& place, GatherList& list) {
  if (place.is_checked()) return copy(place, place.range().iov_len, 0, list);
  list.add(place);
  return verbs::Cause::none;
}

verbs::Cause Shared::gather(QueuePair& pair, RequestNumber number, std::uint32_t rights, GatherList& list) {
  list.clear();
  const SendEntry& entry = pair.sends[number];
  if (entry.has(verbs::send_flags::inlined)) {
    list.add(iovec{pair.sends.inlined_of(number), entry.length});
    return verbs::Cause::none;
  }
  std::uint64_t offset = 0;
  for (const verbs::Sge& sge : pair.sends.sges_of(number)) {
    if (sge.length == 0) continue;
    const Permit found = regions.locate(sge.lkey, pair.plan.domain, sge.addr, sge.length, rights);
    if (found.is_refused()) return found.cause();
    if (found.is_checked() && rights == 0) [[unlikely]] {
      if (const verbs::Cause cause = copy(found, entry.length, offset, list); cause != verbs::Cause::none) return cause;
      offset += sge.length;
    } else if (found.is_null()) [[unlikely]] {
      return verbs::Cause::out_of_range;  // no system call can write there
    } else {
      list.add(found);
    }
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
  link::Reference reference = 0;
  const Status status = transports->submit(pair.route.peer, message, now, &reference);
  if (!is_copied && status != Status::ok) flights.release(slot);
  if (status != Status::ok || !message.wants_outcome) return status;
  if (!is_copied) flights.commit(slot, owner, pair.route.peer, reference);
  ++pair.flights;
  return status;
}

}  // namespace fairlead::qp
