#include "qp/group_datagrams.hpp"

#include <algorithm>
#include <cerrno>

#include "qp/group_address.hpp"
#include "wire/group_datagram.hpp"

namespace fairlead::qp {

static_assert(wire::kGroupHeaderBytes + wire::kGroupBytesMost <= path::GroupSockets::kDatagramMost);
static_assert(wire::kGroupBytesMost == Datagrams::kBytesMost);

Datagrams::Sent GroupDatagrams::drop(std::uint64_t& counter) {
  ++counter;
  return Datagrams::Sent::done;
}

Datagrams::Sent GroupDatagrams::send(const QueuePair& pair, const SendEntry& entry, const GatherList& list) {
  PairCounters& counters = shared_.counters;
  verbs::Gid group = entry.to.ip;
  if (!is_group(group)) {
    const verbs::Gid* const of_lid = groups_.find_lid(static_cast<std::uint16_t>(group[14] << 8 | group[15]));
    if (of_lid == nullptr) return drop(counters.dropped_unreachable);
    group = *of_lid;
  }
  group = canonical_group(group);
  path::GroupSockets* const sockets = shared_.transports != nullptr ? shared_.transports->groups() : nullptr;
  if (sockets == nullptr) return drop(counters.dropped_group_send);
  const base::SocketAddress to = groups_.address_of(group);
  if (groups_.sealed_address(to)) return drop(counters.dropped_group_sealed);

  const int imm = entry.traits().has_imm ? wire::request_flags::imm : 0;
  const int solicited = entry.has(verbs::send_flags::solicited) ? wire::request_flags::solicited : 0;
  const wire::GroupDatagram datagram{
      .flags =
          static_cast<std::uint16_t>(imm | solicited | entry.traffic_class << wire::request_flags::traffic_class_shift),
      .source_port = pair.number,
      .queue_key = entry.remote_qkey,
      .group = group,
      .imm = entry.imm,
      .bytes = {}};
  std::array<std::byte, wire::kGroupHeaderBytes> head;
  std::array<iovec, kSgesMax + 1> pieces{iovec{head.data(), head.size()}};
  const std::span<const iovec> own = list.pieces();
  std::ranges::copy(own, pieces.begin() + 1);
  wire::encode_group(datagram, own, static_cast<std::uint32_t>(entry.length), head.data());
  const int error = sockets->send(to, std::span(pieces).first(own.size() + 1), entry.hop_limit);
  if (error == EAGAIN) return Datagrams::Sent::no_room;
  return drop(error == 0 ? counters.group_sent : counters.dropped_group_send);
}

bool GroupDatagrams::progress() {
  if (shared_.now < look_at_) return false;
  look_at_ = shared_.now + kLookEvery;
  const auto arrived = shared_.transports->groups()->collect();
  for (const path::GroupSockets::Received& each : arrived) take(each);
  return !arrived.empty();
}

void GroupDatagrams::take(const path::GroupSockets::Received& datagram) {
  const base::SocketAddress& from = datagram.from;
  PairCounters& counters = shared_.counters;
  ++counters.group_received;
  const auto count = [](std::uint64_t& counter) { ++counter; };
  if (budget_.is_spent(from, shared_.now)) return count(counters.dropped_group_source);
  if (!shared_.transports->may_be_clear(from)) return count(counters.dropped_group_sealed);
  const auto found = wire::decode_group(datagram.bytes);
  // The right to send to one group does not include the right to send to another.
  if (!found || groups_.address_of(found->group).ip != datagram.group.ip) {
    budget_.note_wrong(from, shared_.now);
    return count(counters.dropped_group_malformed);
  }
  const auto pairs = groups_.pairs_of(found->group);
  if (pairs.empty()) return count(counters.dropped_group_foreign);
  const std::uint64_t size = found->bytes.size();
  const auto traffic_class = static_cast<std::uint8_t>(found->flags >> wire::request_flags::traffic_class_shift);
  const Datagrams::Arrived arrived{.flags = found->flags,
                                   .imm = found->imm,
                                   .source_number = found->source_port,
                                   .from = from,
                                   .header = group_header(from, found->group, size, traffic_class),
                                   .header_kind = group_header_kind(from, found->group)};
  const iovec piece{const_cast<std::byte*>(found->bytes.data()), size};
  // A wrong queue key is not an offence: two programs of a host may use one group with different keys.
  for (const std::uint32_t index : pairs) {
    QueuePair* const pair = pairs_.at(index);
    if (datagrams_.takes(pair, found->queue_key, size)) datagrams_.deliver(*pair, arrived, {&piece, 1}, size);
  }
}

}  // namespace fairlead::qp
