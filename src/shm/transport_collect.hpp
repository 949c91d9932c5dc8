#pragma once
// The receive loops of the transport, and the completion of sent messages: templates that call a taker (see
// Transport::collect).

#include <optional>

#include "shm/transport.hpp"

namespace fairlead::shm {

inline link::Diagnosis diagnosis_of(End by) {
  switch (by) {
    case End::peer_gone:
      return link::Diagnosis::process_ended;
    case End::peer_left:
      return link::Diagnosis::left;
    case End::peer_cut:
      return link::Diagnosis::cut_there;
    case End::here:
      return link::Diagnosis::cut_here;
  }
  return link::Diagnosis::none;
}

// Takes one record. Returns false if it is malformed.
template <typename Taker>
inline bool Transport::take_record(std::uint32_t index, Connection& from, std::size_t& bytes, Taker&& taker) {
  const auto record = from.reader.record();
  if (!record || !from.writer.learn(record->passed)) [[unlikely]]
    return false;
  bytes = record->body.size();
  const auto count = [&](std::size_t before) {
    ++counters_.messages_delivered;
    counters_.bytes_delivered += bytes - before;
    return true;
  };
  wire::ShmHead head;
  if (wire::is_inlined(record->body, head) &&
      taker.inlined(peers_.handle_of(index), head, record->body.subspan(sizeof head))) [[likely]]
    return count(sizeof head);
  if (head.kind == wire::ShmKind::batch) return take_many(index, record->body, head, taker);
  if (head.kind == wire::ShmKind::taken_back) [[unlikely]] {
    const auto notice = notices_.has_room(1) ? peers_.end_arriving(index) : std::nullopt;
    if (notice) notices_.push(*notice);
    return notice.has_value();
  }
  wire::ShmOrdered turn;
  constexpr std::size_t kTurn = sizeof head + sizeof turn;
  if (wire::is_ordered(record->body, head, turn) &&
      taker.ordered(peers_.handle_of(index), head, turn, record->body.subspan(kTurn)))
    return count(kTurn);
  Peer& peer = peers_[index];
  const bool was_under_way = peer.arriving.is_under_way;
  if (!inbox_.read({peers_.handle_of(index), from, peer.arriving, now_}, *record)) return false;
  if (peer.arriving.is_under_way && !was_under_way) make_busy(index, now_);
  taker.deliver(inbox_.delivery());
  return true;
}

// Delivers the messages of one batch record. Returns false if it is malformed.
template <typename Taker>
inline bool Transport::take_many(std::uint32_t index, std::span<const std::byte> body, wire::ShmHead head,
                                 Taker&& taker) {
  const link::PeerHandle from = peers_.handle_of(index);
  std::span<const std::byte> message;
  if (body.size() > sizeof head + kManyMax) return false;  // bounds the time that one record can take of a pass
  // Checks all lengths before delivering anything: after the peer has ended, a malformed record is looked at again.
  for (std::span<const std::byte> rest = body.subspan(sizeof head); !rest.empty();)
    if (!wire::take_batched(rest, message)) return false;
  for (std::span<const std::byte> rest = body.subspan(sizeof head); !rest.empty();) {
    if (!wire::take_batched(rest, message)) return false;
    ++counters_.messages_delivered;
    counters_.bytes_delivered += message.size();
    if (taker.inlined(from, head, message)) [[likely]]
      continue;
    inbox_.delivery().envelope = {.operation = static_cast<wire::Operation>(head.operation),
                                  .status = head.status,
                                  .flags = head.flags,
                                  .source_port = head.source_port,
                                  .target_port = head.target_port};
    inbox_.set_whole(from, message);
    taker.deliver(inbox_.delivery());
  }
  return true;
}

// Takes what a peer has written, and its progress with our records. Reads the shared progress counter only if we wait
// for it.
template <typename Taker>
bool Transport::take(std::uint32_t connection_slot, Taker&& taker) {
  const std::uint32_t index = peers_.at_connection(connection_slot);
  if (index == kNone) return false;
  Connection& from = connections_->peer(connection_slot);
  int taken = 0;
  for (std::size_t bytes = 0; taken < kRecordsInPass && taker.has_room() && from.reader.has_record(); ++taken) {
    if (taken > 0) from.reader.want_ahead();
    if (!take_record(index, from, bytes, taker)) [[unlikely]] {
      connections_->refuse(connection_slot, "it wrote invalid data into shared memory");
      return true;
    }
    from.reader.pass(bytes);
  }
  if (taken > 0) {
    connections_->watch().note_traffic(connection_slot);
    if (taken == kRecordsInPass && !from.is_watched) connections_->watch().remind(connection_slot);
  }
  // The next record that we send also reports our progress. The counter reports it if no record was sent before the
  // next look, or if there is much to report.
  if (from.reader.untold() > 0 && (taken == 0 || !from.is_watched || from.reader.untold() > kUntoldMax)) {
    from.reader.tell();
    from.alert();
  }
  Peer& peer = peers_[index];
  const bool is_served = !peer.is_idle() && serve_sender(peer, from, taker);
  if (!taker.has_room()) connections_->watch().remind(connection_slot);
  if (!is_served) return taken > 0;
  connections_->watch().note_traffic(connection_slot);
  return true;
}

// Completes the messages that the peer's reader has passed.
template <typename Taker>
bool Transport::end_passed(Peer& peer, const Connection& to, Taker&& taker) {
  bool any = false;
  while (!peer.pending.empty() && peer.pending.front().line <= to.writer.passed() && taker.has_room()) {
    const Pending& first = peer.pending.front();
    if (first.owner == Pending::kNobody) {
      if (!outcomes_.has_room(1)) [[unlikely]] {
        connections_->watch().remind(peer.connection_slot);  // memory may be available next time
        break;
      }
      if (first.length == 0 || peer.end_ticket(first, to.own->tickets)) outcomes_.push({first.cookie, Status::ok});
    } else {
      taker.ended(link::Outcome{first.cookie, Status::ok, first.owner, first.length});
    }
    peer.pending.pop();
    any = true;
  }
  return any;
}

template <typename Taker>
bool Transport::serve_sender(Peer& peer, Connection& to, Taker&& taker) {
  if (!to.writer.look()) [[unlikely]] {
    connections_->refuse_reader(peer.connection_slot);
    return true;
  }
  bool any = end_passed(peer, to, taker);
  if (!peer.shorts.empty() || !peer.longs.empty()) any |= outbox_.pump(peer, to);
  return any;
}

template <typename Taker>
bool Transport::collect(base::Instant now, Taker&& taker) {
  now_ = now;
  bool any = false;
  connections_->watch().look([&](std::uint32_t slot) { any |= take(slot, taker); });
  if (now >= expire_at_) [[unlikely]]
    expire(now);
  return any;
}

template <typename Taker>
bool Transport::attend(base::Instant now, Taker&& taker) {
  now_ = now;
  connections_->attend(now);
  bool any = false;
  while (const ConnectionEvent* const first = connections_->first_event()) {
    if (!has_room_for(*first)) [[unlikely]]
      break;
    const std::optional<ConnectionEvent> event = connections_->next_event();
    any = true;
    switch (event->kind) {
      case ConnectionEvent::Kind::opened:
        open(event->slot, now);
        break;
      case ConnectionEvent::Kind::claimed:
        search_.note_claim(event->address);
        break;
      case ConnectionEvent::Kind::declined:
        search_.failed(event->address, event->reason);
        break;
      case ConnectionEvent::Kind::ended: {
        for (int looks = 0; looks < kLastLooks && take(event->slot, taker); ++looks) {
        }
        search_.failed(event->address, event->reason);
        const std::uint32_t index = peers_.disconnect(event->slot);
        connections_->forget(event->slot);
        if (index != kNone)
          lose(index, peers_[index].has_stopped ? Status::silent : Status::refused, now, diagnosis_of(event->ended_by));
        break;
      }
    }
  }
  return any;
}

}  // namespace fairlead::shm
