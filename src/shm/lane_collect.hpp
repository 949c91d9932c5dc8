#pragma once
// What comes in through the lane, and the ends of what went out: the loops that call a taker (see Lane::collect).

#include "shm/lane.hpp"

namespace fairlead::shm {

// One record; false if it makes no sense.
template <typename Taker>
inline bool Lane::take_record(std::uint32_t index, ShmPeer& from, std::size_t& bytes, Taker&& taker) {
  const auto record = from.reader.record();
  if (!record || !from.writer.learn(record->passed)) [[unlikely]]
    return false;
  bytes = record->body.size();
  const auto count = [&](std::size_t before) {
    ++counters_.messages_delivered;
    counters_.bytes_delivered += bytes - before;
    return true;
  };
  wire::LaneHead head;
  if (wire::is_brief_lane(record->body, head) && taker.brief(handle_of(index), head, record->body.subspan(sizeof head)))
      [[likely]]
    return count(sizeof head);
  if (head.kind == wire::LaneKind::many) return take_many(index, record->body, head, taker);
  wire::LaneTurn turn;
  constexpr std::size_t kTurn = sizeof head + sizeof turn;
  if (wire::is_turn_lane(record->body, head, turn) &&
      taker.turn(handle_of(index), head, turn, record->body.subspan(kTurn)))
    return count(kTurn);
  if (!read_record(index, *record)) return false;
  taker.deliver(delivery_);
  return true;
}

// The messages of one record; false if it makes no sense.
template <typename Taker>
inline bool Lane::take_many(std::uint32_t index, std::span<const std::byte> body, wire::LaneHead head, Taker&& taker) {
  const link::PeerHandle from = handle_of(index);
  std::span<const std::byte> message;
  if (body.size() > sizeof head + kManyMax) return false;  // one record must not keep a pass for long
  // None of them, if they do not fit: what makes no sense is looked at again when the peer has ended.
  for (std::span<const std::byte> rest = body.subspan(sizeof head); !rest.empty();)
    if (!wire::take_lane_message(rest, message)) return false;
  for (std::span<const std::byte> rest = body.subspan(sizeof head); !rest.empty();) {
    if (!wire::take_lane_message(rest, message)) return false;
    ++counters_.messages_delivered;
    counters_.bytes_delivered += message.size();
    if (taker.brief(from, head, message)) [[likely]]
      continue;
    delivery_.envelope = {.operation = static_cast<wire::Operation>(head.operation),
                          .status = head.status,
                          .flags = head.flags,
                          .source_port = head.source_port,
                          .target_port = head.target_port};
    deliver_whole(from, message);
    taker.deliver(delivery_);
  }
  return true;
}

// What a peer has written. Its progress with what we wrote came along, or is looked at if we wait for it.
template <typename Taker>
bool Lane::take(std::uint32_t hub_slot, Taker&& taker) {
  const std::uint32_t index = by_hub_slot_[hub_slot];
  if (index == kNone) return false;
  ShmPeer& from = hub_->peer(hub_slot);
  int taken = 0;
  for (std::size_t bytes = 0; taken < kRecordsInPass && taker.has_room() && from.reader.has_record(); ++taken) {
    if (taken > 0) from.reader.want_ahead();
    if (!take_record(index, from, bytes, taker)) [[unlikely]] {
      hub_->refuse(hub_slot, "what it wrote into shared memory makes no sense");
      return true;
    }
    from.reader.pass(bytes);
  }
  if (taken > 0) {
    hub_->note_traffic(hub_slot);
    if (taken == kRecordsInPass && !from.is_watched) hub_->remind(hub_slot);
  }
  // The next record of ours tells the peer how far we are. If there is none by the next look, or much to tell, the
  // counter does.
  if (from.reader.untold() > 0 && (taken == 0 || !from.is_watched || from.reader.untold() > kUntoldMax)) {
    from.reader.tell();
    from.alert();
  }
  Peer& peer = *peers_[index];
  const bool is_served = !peer.is_idle() && serve_sender(peer, from, taker);
  if (!taker.has_room()) hub_->remind(hub_slot);
  if (!is_served) return taken > 0;
  hub_->note_traffic(hub_slot);
  return true;
}

// Ends what the peer's reader has passed.
template <typename Taker>
bool Lane::end_passed(Peer& peer, const ShmPeer& to, Taker&& taker) {
  bool any = false;
  while (!peer.pending.empty() && peer.pending.front().line <= to.writer.passed() && taker.has_room()) {
    const Pending& first = peer.pending.front();
    if (first.owner == kNone) {
      outcomes_.push({first.cookie, Status::ok});
    } else {
      taker.ended(NearEnd{first.cookie, first.owner, first.length, Status::ok});
    }
    peer.pending.pop();
    any = true;
  }
  return any;
}

template <typename Taker>
bool Lane::serve_sender(Peer& peer, ShmPeer& to, Taker&& taker) {
  if (!to.writer.look()) [[unlikely]] {
    refuse_reader(peer.hub_slot);
    return true;
  }
  bool any = end_passed(peer, to, taker);
  if (!peer.shorts.empty() || !peer.longs.empty()) any |= pump(peer, to);
  return any;
}

template <typename Taker>
bool Lane::collect(base::Instant now, Taker&& taker) {
  now_ = now;
  bool any = false;
  hub_->look([&](std::uint32_t slot) { any |= take(slot, taker); });
  if (now >= expire_at_) [[unlikely]]
    expire(now);
  return any;
}

template <typename Taker>
bool Lane::attend(base::Instant now, Taker&& taker) {
  now_ = now;
  hub_->attend(now);
  bool any = false;
  while (auto event = hub_->next_event()) {
    any = true;
    switch (event->kind) {
      case ShmEvent::Kind::opened:
        open(event->slot, now);
        break;
      case ShmEvent::Kind::claimed:
        claims_.push(event->address);
        break;
      case ShmEvent::Kind::declined:
        remember_reason(event->address, event->reason);
        break;
      case ShmEvent::Kind::ended: {
        for (int looks = 0; looks < kLastLooks && take(event->slot, taker); ++looks) {
        }
        remember_reason(event->address, event->reason);
        const std::uint32_t index = by_hub_slot_[event->slot];
        by_hub_slot_[event->slot] = kNone;
        hub_->forget(event->slot);
        if (index != kNone) lose(index, peers_[index]->has_stopped ? Status::silent : Status::refused, now);
        break;
      }
    }
  }
  return any;
}

}  // namespace fairlead::shm
