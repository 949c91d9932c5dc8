#include "transport/flight_log.hpp"

#include <utility>

namespace fairlead::transport {

using observe::FlightKind;

void FlightLog::received(link::PeerHandle peer, std::uint64_t bytes, base::Instant now) {
  const link::LinkCounters& all = link_.counters();
  const std::uint64_t acked = all.segments_acked - std::exchange(seen_.acked, all.segments_acked);
  const std::uint64_t delivered = all.messages_delivered + all.chunks_delivered;
  note(peer, FlightKind::received, acked, bytes, now);
  known_[peer.slot].moved += acked + delivered - std::exchange(seen_.delivered, delivered);

  const std::uint64_t refused = all.datagrams_received - all.accepted();
  if (refused != seen_.refused) [[unlikely]]
    note(peer, FlightKind::refused, refused - std::exchange(seen_.refused, refused), 0, now);
}

void FlightLog::sent(const link::Train& train, bool is_taken, base::Instant now) {
  if (train.to != last_to_) [[unlikely]] {
    const auto peer = link_.find(train.to);
    if (!peer) return;  // an answer to a stranger
    last_to_ = train.to;
    last_peer_ = *peer;
  }
  note(last_peer_, is_taken ? FlightKind::sent : FlightKind::not_taken, train.datagrams, train.bytes, now);
  if (link_.counters().resends != seen_.resends) [[unlikely]]
    note_resends(now);
}

void FlightLog::note_resends(base::Instant now) {
  const link::LinkCounters& all = link_.counters();
  const auto note_rise = [&](FlightKind kind, std::uint64_t count, std::uint64_t& seen) {
    if (count != seen) note(last_peer_, kind, count - seen, 0, now);
    seen = count;
  };
  note_rise(FlightKind::resent_fast, all.resends_fast, seen_.fast);
  note_rise(FlightKind::resent_probe, all.resends_probe, seen_.probe);
  note_rise(FlightKind::resent_timeout, all.resends_timeout, seen_.timeout);
  seen_.resends = all.resends;
}

void FlightLog::note_lost(link::PeerHandle peer, Status status, base::Instant now) {
  const std::uint64_t failed = link_.counters().messages_failed;
  if (failed != seen_.failed) note(peer, FlightKind::failed, failed - std::exchange(seen_.failed, failed), 0, now);
  note(peer, FlightKind::lost, static_cast<std::uint64_t>(status), 0, now);
  watchdog_.forget(peer.slot);
}

void FlightLog::forget(link::PeerHandle peer) {
  if (last_peer_ == peer) last_to_ = {};
  if (peer.slot >= known_.size() || known_[peer.slot].handle != peer) return;
  known_[peer.slot] = {};
  recorder_.forget(peer.slot);
  watchdog_.forget(peer.slot);
}

void FlightLog::meet(link::PeerHandle peer) {
  if (peer.slot >= known_.size()) known_.resize(peer.slot + 1);
  known_[peer.slot] = {.handle = peer};
  recorder_.forget(peer.slot);
  watchdog_.forget(peer.slot);
  last_to_ = {};  // the address may belong to another peer now
}

void FlightLog::look(std::uint32_t slot, bool is_answer_awaited, base::Instant now) {
  const Known& known = known_[slot];
  const link::PeerFacts facts = link_.facts(known.handle);
  const observe::PeerVitals vitals{.address = facts.address,
                                   .is_connected = facts.is_connected,
                                   .round_trip = facts.round_trip,
                                   .resend_after = facts.resend_after,
                                   .last_heard = facts.last_heard,
                                   .segments_in_flight = facts.segments_in_flight,
                                   .bytes_in_flight = facts.bytes_in_flight,
                                   .messages_queued = facts.messages_queued,
                                   .messages_arriving = facts.messages_arriving,
                                   .is_answer_awaited = is_answer_awaited,
                                   .moved = known.moved};
  is_watching_ |= diagnose(vitals, now) != observe::Stall::none;
  report(LogTopic::link, [&] {
    std::string text = watchdog_.look(slot, vitals, now);
    return text.empty() ? text : text + "\n";
  });
}

// Omits a report that does not fit; the last note then says so.
void FlightLog::append(LogLevel level, LogTopic topic, std::string text) {
  constexpr std::string_view kFull = "(more happened than fits into one report)\n";
  if (text.empty()) return;
  std::size_t bytes = text.size() + kFull.size();
  for (const base::LogNote& note : report_) bytes += note.text.size();
  if (bytes > kReportMax) {
    if (!report_.empty() && report_.back().text == kFull) return;
    text = kFull;
  }
  report_.push_back({level, topic, std::move(text)});
}

std::vector<observe::PeerFlight> FlightLog::flights() const {
  std::vector<observe::PeerFlight> all;
  recorder_.for_each_peer([&](std::uint32_t slot) {
    auto events = recorder_.events(slot);
    if (events.empty()) return;
    all.push_back({link_.address(known_[slot].handle), recorder_.recorded(slot), std::move(events)});
  });
  return all;
}

std::string FlightLog::describe(link::PeerHandle peer, base::Instant now) const {
  if (peer.slot >= known_.size() || known_[peer.slot].handle != peer) return {};
  return recorder_.describe(peer.slot, link_.address(peer).to_string(), now);
}

}  // namespace fairlead::transport
