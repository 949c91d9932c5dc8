#include "shm/peer_poll.hpp"

#include <optional>

namespace fairlead::shm {

void PeerPoll::begin(std::uint32_t index, std::uint32_t connection_slot) {
  stage_ = Stage::records;
  is_in_record_ = has_found_ = false;
  records_ = 0;
  index_ = index;
  slot_ = connection_slot;
  from_ = &connections_.peer(connection_slot);
}

void PeerPoll::abandon() noexcept {
  stage_ = Stage::over;
  is_in_record_ = has_found_ = false;
  inbox_.forget_batch();
}

Arrived PeerPoll::next(bool has_room, base::Instant now) {
  if (stage_ == Stage::records && next_message(has_room, now)) return Arrived::message;
  if (stage_ == Stage::outcomes && next_outcome(has_room)) return Arrived::outcome;
  return Arrived::nothing;
}

// Records ------------------------------------------------------------------------------------------------------------

/// Finds the next message in the peer's ring. If there is none, the stage of records is over.
inline bool PeerPoll::next_message(bool has_room, base::Instant now) {
  for (;;) {
    if (inbox_.has_batched()) [[unlikely]] {
      if (inbox_.take_batched()) return true;
      return refuse(), false;
    }
    if (is_in_record_) {
      from_->reader.pass(record_bytes_);
      is_in_record_ = false;
      ++records_;
    }
    if (records_ == kRecordsInPoll || !has_room || !from_->reader.has_record()) break;
    if (records_ > 0) from_->reader.want_ahead();
    const bool is_message = read_record(now);
    if (stage_ != Stage::records) [[unlikely]]
      return false;
    is_in_record_ = true;
    if (is_message) [[likely]]
      return true;
  }
  end_records();
  return false;
}

/// Reads the next record. Returns false if it is no message, or a batch, whose messages come next.
inline bool PeerPoll::read_record(base::Instant now) {
  const auto record = from_->reader.record();
  if (!record || !from_->writer.learn(record->passed)) [[unlikely]]
    return refuse(), false;
  record_bytes_ = record->body.size();
  switch (inbox_.read({peers_.handle_of(index_), *from_, peers_[index_].arriving, now}, *record)) {
    case Inbox::Read::message:
      return true;
    case Inbox::Read::batch:
      return false;
    case Inbox::Read::taken_back:
      if (!end_arriving()) refuse();
      return false;
    case Inbox::Read::malformed:
      break;
  }
  return refuse(), false;
}

/// Ends the message that is arriving, because its sender took it back. Returns false if there is none.
bool PeerPoll::end_arriving() {
  const auto notice = notices_.has_room(1) ? peers_.end_arriving(index_) : std::nullopt;
  if (notice) notices_.push(*notice);
  return notice.has_value();
}

void PeerPoll::refuse() {
  connections_.refuse(slot_, "it wrote invalid data into shared memory");
  has_found_ = true;
  stage_ = Stage::over;
}

/// Tells the peer how far we have read, and looks how far it has read.
inline void PeerPoll::end_records() {
  stage_ = Stage::outcomes;
  Connection& from = *from_;
  if (records_ > 0) {
    has_found_ = true;
    if (records_ == kRecordsInPoll && !from.is_watched) connections_.watch().remind(slot_);
  }
  // The next record that we send also reports our progress. The counter reports it if no record was sent before the
  // next look, or if there is much to report.
  if (from.reader.untold() > 0 && (records_ == 0 || !from.is_watched || from.reader.untold() > kUntoldMax)) {
    from.reader.tell();
    from.alert();
  }
  // Reads the shared progress counter only if we wait for it.
  if (!peers_[index_].is_idle() && !from.writer.look()) [[unlikely]] {
    connections_.refuse_reader(slot_);
    has_found_ = true;
    stage_ = Stage::over;
  }
}

// Outcomes -----------------------------------------------------------------------------------------------------------

/// Completes the next message that the peer's reader has passed. If there is none, the poll is over.
inline bool PeerPoll::next_outcome(bool has_room) {
  TransportPeer& peer = peers_[index_];
  while (has_room && !peer.pending.empty() && peer.pending.front().line <= from_->writer.passed()) {
    const Pending first = peer.pending.front();
    peer.pending.pop();
    has_found_ = true;
    outcome_ = {first.cookie, Status::ok, first.owner, first.length};
    if (first.owner != Pending::kNobody) return true;
    outcome_.length = 0;
    if (first.length == 0 || peer.end_ticket(first, from_->own->tickets)) return true;
  }
  end(has_room);
  return false;
}

inline void PeerPoll::end(bool has_room) {
  stage_ = Stage::over;
  TransportPeer& peer = peers_[index_];
  if ((!peer.shorts.empty() || !peer.longs.empty()) && outbox_.pump(peer, *from_)) has_found_ = true;
  if (!has_room) connections_.watch().remind(slot_);
  if (has_found_) connections_.watch().note_traffic(slot_);
}

}  // namespace fairlead::shm
