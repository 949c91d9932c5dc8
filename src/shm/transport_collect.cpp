// Passes: which peers are polled, and the arrival and departure of peers.

#include "shm/transport.hpp"

namespace fairlead::shm {

namespace {

link::Diagnosis diagnosis_of(End by) {
  switch (by) {
    case End::peer_gone:
      return link::Diagnosis::process_ended;
    case End::peer_left:
      return link::Diagnosis::left;
    case End::peer_cut:
      return link::Diagnosis::cut_there;
    case End::here:
      return link::Diagnosis::cut_here;
    case End::parted:  // but not everything was done
      return link::Diagnosis::cut_there;
  }
  return link::Diagnosis::none;
}

}  // namespace

void Transport::begin_pass(base::Instant now) {
  now_ = now;
  is_attending_ = has_found_ = false;
  poll_.abandon();
  connections_->watch().begin_look();
}

void Transport::attend(base::Instant now) {
  now_ = now;
  is_attending_ = true;
  has_found_ = false;
  poll_.abandon();
  connections_->attend(now);
}

/// Handles what has happened to connections, up to the next peer that is gone: its connection is polled until nothing
/// is left there. Returns kNone if there is none.
std::uint32_t Transport::next_departing() {
  if (departing_) {
    if (poll_.has_found() && ++last_looks_ < kLastLooks) return departing_->slot;
    end_departure(*departing_);
    departing_.reset();
  }
  while (const ConnectionEvent* const first = connections_->first_event()) {
    if (!has_room_for(*first)) [[unlikely]]
      break;
    const std::optional<ConnectionEvent> event = connections_->next_event();
    has_found_ = true;
    switch (event->kind) {
      case ConnectionEvent::Kind::opened:
        open(event->slot, now_);
        break;
      case ConnectionEvent::Kind::claimed:
        search_.note_claim(event->address);
        break;
      case ConnectionEvent::Kind::declined:
        search_.failed(event->address, event->reason);
        break;
      case ConnectionEvent::Kind::asked_to_part:
        partings_.take_request(event->slot);
        break;
      case ConnectionEvent::Kind::done:
        partings_.take_done(event->slot);
        break;
      case ConnectionEvent::Kind::ended:
        departing_ = event;
        last_looks_ = 0;
        return event->slot;
    }
  }
  return kNone;
}

/// Nothing more comes from the peer: it is lost.
void Transport::end_departure(const ConnectionEvent& ended) {
  search_.failed(ended.address, ended.reason);
  const std::uint32_t index = peers_.disconnect(ended.slot);
  connections_->forget(ended.slot);
  if (index == kNone) return;
  if (ended.ended_by == End::parted && peers_[index].is_parting && !peers_[index].is_awaited()) {
    std::erase(busy_, index);
    return partings_.end(index, now_);
  }
  lose(index, peers_[index].has_stopped ? Status::silent : Status::refused, now_, diagnosis_of(ended.ended_by));
}

}  // namespace fairlead::shm
