// The straight line of short active messages inside a host: from the face's memory into the ring, and from there into
// an arrival. What is not straight (long, placed, refused, no room) goes the general way, which knows all cases.

#include "base/copy_short.hpp"
#include "engine/active_wire.hpp"
#include "engine/engine.hpp"

namespace fairlead::engine {

/// To the peer of this host that was sent to last. False: nothing was done.
bool Engine::send_active_near(const Port& port, const ActiveMessage& message, Conversation* conversation) {
  const bool is_straight = message.offset == 0 && message.memory.size() == 2 &&
                           message.memory[0].iov_len <= message.length &&
                           message.memory[1].iov_len >= message.length - message.memory[0].iov_len &&
                           message.length <= options_.get(Option::embedded_max) && message.head <= kActiveHeadMax &&
                           message.head <= message.length && message.head % 8 == 0;
  const link::PeerHandle* peer = transports_->last_local(message.to.engine);
  if (!is_straight || peer == nullptr) return false;
  const wire::LaneHead head{.kind = wire::LaneKind::named,
                            .operation = static_cast<std::uint8_t>(active_wire::operation_of(message.kind)),
                            .flags = message.word,
                            .source_port = port.number,
                            .target_port = message.to.port,
                            .status = active_wire::status_byte(message)};
  const wire::LaneNames names{.key = active_wire::access_of(message),
                              .cookie = message.name,
                              .a = active_wire::shown_secret(message.kind, port.active->secret())};
  const auto bytes_at = [](const iovec& piece, std::size_t length) {
    return std::span(static_cast<const std::byte*>(piece.iov_base), length);
  };
  const iovec& first = message.memory[0];
  if (!lane()->send_named(*peer, head, names, bytes_at(first, first.iov_len),
                          bytes_at(message.memory[1], message.length - first.iov_len)))
    return false;
  if (conversation != nullptr) *conversation = {way_of(*peer), peer_losses_.count()};
  ++counters_.active_sent;
  ++counters_.active_sent_straight;
  return true;
}

bool Engine::arrive_active_near(link::PeerHandle from, const wire::LaneHead& head, const wire::LaneNames& names,
                                std::span<const std::byte> bytes) {
  const auto operation = static_cast<wire::Operation>(head.operation);
  const bool is_back = operation == wire::Operation::active_reply;
  if (!is_back && operation != wire::Operation::active_request) [[unlikely]]
    return false;
  const std::uint32_t slot = ports_.find_number(head.target_port);
  if (slot == Ports::kNone || !ports_[slot].active) [[unlikely]]
    return false;
  ActivePort& port = *ports_[slot].active;
  const auto [head_bytes, is_placed] = active_wire::shape_of(active_wire::kind_of(operation), head.status);
  const RemotePort source{transports_->address(from), head.source_port};
  const bool is_admitted =
      is_back ? names.key == port.secret() && port.requests.is_open(names.cookie, source) : port.admits(names.key);
  if (!is_admitted || is_placed || !port.is_packed(bytes.size()) || head_bytes > kActiveHeadMax ||
      head_bytes > bytes.size()) [[unlikely]]
    return false;
  Arrival* const arrival = port.acquire(0, is_back);
  if (arrival == nullptr) [[unlikely]]
    return false;
  if (is_back) port.requests.close(names.cookie);
  arrival->kind = active_wire::kind_of(operation);
  arrival->word = head.flags;
  arrival->reply_access = names.a;
  arrival->source = source;
  arrival->status = Status::ok;
  arrival->is_placed = false;
  arrival->head = head_bytes;
  arrival->access = names.key;
  arrival->name = names.cookie;
  arrival->offset = 0;
  arrival->head_bytes = arrival->packed.data();
  arrival->data_length = bytes.size() - head_bytes;
  arrival->data = arrival->head_bytes + head_bytes;
  if (!bytes.empty()) base::copy_short(arrival->packed.data(), bytes.data(), bytes.size());
  ++counters_.active_received;
  ++counters_.active_received_straight;
  port.queue(*arrival, true);
  ports_.touch(slot);
  return true;
}

}  // namespace fairlead::engine
