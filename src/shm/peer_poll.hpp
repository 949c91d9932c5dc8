#pragma once
// One look at one peer in a pass: first the messages that it has written, then the outcomes of our messages that it has
// read. Each comes up as a value; the poll goes on with the next call. A record is consumed when its messages have been
// taken, because until then the peer must not write over it.

#include <cstddef>
#include <cstdint>

#include "base/fifo.hpp"
#include "link/link.hpp"
#include "shm/connections.hpp"
#include "shm/counters.hpp"
#include "shm/inbox.hpp"
#include "shm/outbox.hpp"
#include "shm/transport_peer.hpp"

namespace fairlead::shm {

class PeerPoll {
 public:
  PeerPoll(Connections& connections, TransportPeers& peers, Outbox& outbox, TransportCounters& counters,
           base::Fifo<link::Notice>& notices)
      : connections_(connections), peers_(peers), outbox_(outbox), counters_(counters), notices_(notices) {}

  /// Begins to poll the peer at `index`, whose connection is at `connection_slot`.
  void begin(std::uint32_t index, std::uint32_t connection_slot, base::Instant now) {
    is_in_record_ = has_found_ = false;
    records_ = 0;
    index_ = index;
    slot_ = connection_slot;
    peer_ = &peers_[index];
    from_ = &connections_.peer(connection_slot);
    now_ = now;
  }
  /// Forgets the poll; a record that was not consumed is read again.
  void abandon() noexcept {
    from_ = nullptr;
    has_found_ = false;
    inbox_.forget_batch();
  }
  /// Returns the next message, or part of a message, that the peer has written; null if there is none. It is valid
  /// until the next call. Its bytes lie in shared memory, which the peer may still change. Without room for events only
  /// the rest of a record comes.
  const link::Delivery* next_message(bool has_room);
  /// Call when no message is left. Returns the outcome of the next of our messages that the peer has read, valid until
  /// the next call; null if there is none: the poll is over.
  const link::Outcome* next_outcome(bool has_room);

  std::uint32_t index() const noexcept { return index_; }
  /// Returns whether the poll has found anything. Known at its end.
  bool has_found() const noexcept { return has_found_; }

 private:
  static constexpr int kRecordsInPoll = 64;
  static constexpr std::uint64_t kUntoldMax = 31;  // lines consumed without telling the writer

  link::PeerHandle handle() const noexcept { return {TransportPeers::kFirstSlot + index_, peer_->generation}; }
  Inbox::Read read_other(std::span<const std::byte> body);
  bool end_arriving();
  std::nullptr_t refuse();
  void end_records();
  void end(bool has_room);

  Connections& connections_;
  TransportPeers& peers_;
  Outbox& outbox_;
  TransportCounters& counters_;
  base::Fifo<link::Notice>& notices_;
  Inbox inbox_{counters_};
  link::Outcome outcome_;

  bool is_in_record_ = false;  // its messages are being taken
  bool has_found_ = false;
  int records_ = 0;  // read
  std::uint32_t index_ = 0, slot_ = 0;
  TransportPeer* peer_ = nullptr;
  Connection* from_ = nullptr;  // null: the poll is over
  std::size_t record_bytes_ = 0;
  base::Instant now_{};
};

// Inline, because each pass polls each busy peer.

[[gnu::always_inline]] inline const link::Delivery* PeerPoll::next_message(bool has_room) {
  if (from_ == nullptr) [[unlikely]]
    return nullptr;
  for (;;) {
    if (inbox_.has_batched()) [[unlikely]]
      return inbox_.take_batched() ? &inbox_.delivery() : refuse();
    RingReader& reader = from_->reader;
    if (is_in_record_) reader.pass(record_bytes_);
    is_in_record_ = has_room && records_ < kRecordsInPoll && reader.has_record();
    if (!is_in_record_) break;
    if (records_++ > 0) reader.want_ahead();
    const auto record = reader.record();
    if (!record || !from_->writer.learn(record->passed)) [[unlikely]]
      return refuse();
    record_bytes_ = record->body.size();
    if (inbox_.read_inlined(handle(), record->body)) [[likely]]
      return &inbox_.delivery();
    const Inbox::Read other = read_other(record->body);
    if (other == Inbox::Read::message) return &inbox_.delivery();
    if (other == Inbox::Read::malformed) return refuse();
  }
  end_records();
  return nullptr;
}

/// Tells the peer how far we have read, and looks how far it has read.
inline void PeerPoll::end_records() {
  if (records_ > 0) {
    has_found_ = true;
    if (records_ == kRecordsInPoll && !from_->is_watched) connections_.watch().remind(slot_);
  }
  // The next record that we send also reports our progress. The counter reports it if no record was sent before the
  // next look, or if there is much to report.
  RingReader& reader = from_->reader;
  if (reader.untold() > 0 && (records_ == 0 || !from_->is_watched || reader.untold() > kUntoldMax)) {
    reader.tell();
    from_->alert();
  }
  // Reads the shared progress counter only if we wait for it.
  if (!peer_->is_idle() && !from_->writer.look()) [[unlikely]] {
    connections_.refuse_reader(slot_);
    has_found_ = true;
    from_ = nullptr;
  }
}

[[gnu::always_inline]] inline const link::Outcome* PeerPoll::next_outcome(bool has_room) {
  if (from_ == nullptr) [[unlikely]]
    return nullptr;
  base::Fifo<Pending>& pending = peer_->pending;
  while (has_room && !pending.empty() && pending.front().line <= from_->writer.passed()) {
    const Pending& first = pending.front();
    pending.pop();  // its contents stay until another one is appended
    has_found_ = true;
    const bool is_owned = first.owner != Pending::kNobody;
    outcome_ = {first.cookie, Status::ok, first.owner, is_owned ? first.length : 0};
    if (is_owned || first.length == 0 || peer_->end_ticket(first, from_->own->tickets)) return &outcome_;
  }
  end(has_room);
  return nullptr;
}

inline void PeerPoll::end(bool has_room) {
  if ((!peer_->shorts.empty() || !peer_->longs.empty()) && outbox_.pump(*peer_, *from_)) has_found_ = true;
  if (!has_room) connections_.watch().remind(slot_);
  if (has_found_) connections_.watch().note_traffic(slot_);
  from_ = nullptr;
}

}  // namespace fairlead::shm
