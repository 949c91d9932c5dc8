// The transport's peers: how they are added, opened and lost.

#include "shm/transport.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "base/ensure.hpp"
#include "base/say.hpp"

namespace fairlead::shm {
namespace {

constexpr base::Duration kSeekEvery = std::chrono::milliseconds(10);

}  // namespace

Transport::Transport(std::unique_ptr<Connections> connections, const TransportOptions& options)
    : connections_(std::move(connections)),
      options_(options),
      peers_(std::min(connections_->peers().size_max(), DoorbellPage::kBits)) {
  options_.copied_max = std::min(options_.copied_max, sizeof(Block));
}

std::optional<link::PeerHandle> Transport::find(const base::SocketAddress& address) const {
  const std::uint32_t index = peers_.find(address);
  if (index == kNone || peers_[index].is_parting) return std::nullopt;
  return peers_.handle_of(index);
}

std::optional<link::PeerHandle> Transport::seek(const base::SocketAddress& address, base::Instant now) {
  if (const auto known = find(address)) return known;
  if (is_leaving_ || partings_.is_wanted()) return std::nullopt;
  search_.ask(address, {}, now);
  if (!options_.is_forced) return std::nullopt;
  const std::uint32_t index = add_peer(address);
  if (index == kNone) return std::nullopt;
  peers_[index].seek_until = now + options_.connect_within;
  peers_[index].seek_next = now + kSeekEvery;
  return peers_.handle_of(index);
}

std::optional<link::PeerHandle> Transport::meet(const base::SocketAddress& address, const base::SipKey& key,
                                                base::Instant now) {
  connections_->vouch(address, key);
  const auto known = find(address);
  if (known) peers_[*known].key = key;
  if (!partings_.is_wanted() && (!known || !is_open(*known))) search_.ask(address, key, now);
  return known;
}

/// Returns kNone if memory is short.
std::uint32_t Transport::add_peer(const base::SocketAddress& address) {
  const bool has_room = base::say([&] {
    busy_.reserve(peers_.size() + 1);
    partings_.make_room();
  });
  return has_room ? peers_.add(address) : kNone;
}

/// Returns whether there is memory to process the event. If not, the event waits.
bool Transport::has_room_for(const ConnectionEvent& event) {
  switch (event.kind) {
    case ConnectionEvent::Kind::opened:
      return (peers_.find(event.address) != kNone || add_peer(event.address) != kNone) && notices_.has_room(1);
    case ConnectionEvent::Kind::ended: {
      const std::uint32_t index = peers_.at_connection(event.slot);
      return index == kNone || has_room_for_loss(peers_[index]);
    }
    case ConnectionEvent::Kind::claimed:
      return search_.has_room();
    case ConnectionEvent::Kind::declined:
      return true;
    case ConnectionEvent::Kind::asked_to_part:
      return notices_.has_room(1);
    case ConnectionEvent::Kind::done:
      return true;
  }
  return true;
}

bool Transport::has_room_for_loss(const Peer& peer) {
  const std::size_t ends = peer.pending.size() + peer.shorts.size() + peer.longs.size();
  return outcomes_.has_room(ends) && notices_.has_room(2);
}

void Transport::open(std::uint32_t connection_slot, base::Instant now) {
  const base::SocketAddress& address = connections_->peer(connection_slot).address;
  const std::uint32_t index = peers_.find(address);
  ENSURE(index != kNone, "{} opens without a place", address.to_string());
  peers_.connect(index, connection_slot);
  Peer& peer = peers_[index];
  peer.passed_seen = 0;
  peer.moved_at = now;
  search_.found(address);
  notices_.push({.kind = link::Notice::Kind::connected, .peer = peers_.handle_of(index)});
  connections_->watch().remind(connection_slot);  // the peer may have written before this slot had an owner
  outbox_.pump(peer, connections_->peer(connection_slot));
  if (partings_.is_wanted()) partings_.begin(index);  // it was admitted before
}

// Fails everything that is pending to the peer, each message once.
void Transport::lose(std::uint32_t index, Status status, base::Instant now, link::Diagnosis diagnosis) {
  Peer& peer = peers_[index];
  const link::PeerHandle handle = peers_.handle_of(index);
  const auto fail = [&](std::uint64_t cookie) {
    outcomes_.push({cookie, status});
    ++counters_.messages_failed;
  };
  for (; !peer.pending.empty(); peer.pending.pop()) {
    const Pending& first = peer.pending.front();
    if (first.owner == Pending::kNobody && peer.has_ended(first)) continue;
    outcomes_.push({first.cookie, status, first.owner, first.length});
    ++counters_.messages_failed;
  }
  for (auto* queue : {&peer.shorts, &peer.longs}) {
    for (; !queue->empty(); queue->pop()) {
      if (queue->front().message.wants_outcome && !queue->front().is_void) fail(queue->front().message.cookie);
      outbox_.release(queue->front());
    }
  }
  if (peer.arriving.is_under_way) {
    notices_.push({.kind = link::Notice::Kind::reassembly_lost,
                   .peer = handle,
                   .status = status,
                   .target = peer.arriving.target});
  }
  notices_.push({.kind = link::Notice::Kind::lost,
                 .peer = handle,
                 .status = status,
                 .silent_for = now - peer.moved_at,
                 .diagnosis = diagnosis});
  std::erase(busy_, index);
  partings_.note_lost(index);
  peers_.forget(index);
}

std::optional<link::Notice> Transport::next_notice() {
  if (told_end_) peers_.release(*std::exchange(told_end_, std::nullopt));
  auto notice = notices_.take();
  if (notice && (notice->kind == link::Notice::Kind::lost || notice->kind == link::Notice::Kind::parted))
    told_end_ = notice->peer;
  return notice;
}

void Transport::make_busy(std::uint32_t index, base::Instant now) {
  Peer& peer = peers_[index];
  if (peer.is_busy) return;
  peer.is_busy = true;
  peer.moved_at = now;
  busy_.push_back(index);
  const base::Duration look_again = peer.connection_slot == kNone ? kSeekEvery : options_.give_up_after / 8;
  expire_at_ = std::min(expire_at_, now + look_again);
}

void Transport::expire(base::Instant now) {
  expire_at_ = base::kNever;
  for (std::size_t i = busy_.size(); i-- > 0;) {
    const std::uint32_t index = busy_[i];
    Peer& peer = peers_[index];
    if (!peer.is_awaited()) {
      peer.is_busy = false;
      busy_[i] = busy_.back();
      busy_.pop_back();
      continue;
    }
    look_after(index, now);
  }
}

// Asks again for a peer that is not there yet. Gives up a peer that does not come or stops reading.
void Transport::look_after(std::uint32_t index, base::Instant now) {
  Peer& peer = peers_[index];
  if (peer.connection_slot == kNone) {
    if (now >= peer.seek_until && has_room_for_loss(peer))
      return lose(index, Status::unreachable, now, link::Diagnosis::not_shared);
    if (now >= peer.seek_next) {
      peer.seek_next = now + kSeekEvery;
      search_.ask(peer.address, peer.key, now);
    }
    expire_at_ = std::min(expire_at_, peer.seek_next);
    return;
  }
  const std::uint64_t passed = connections_->peer(peer.connection_slot).writer.passed();
  if (passed != peer.passed_seen || peer.is_idle()) peer.moved_at = now;
  peer.passed_seen = passed;
  Arriving& arriving = peer.arriving;
  if (arriving.done != arriving.done_seen || !arriving.is_under_way) arriving.moved_at = now;
  arriving.done_seen = arriving.done;
  const auto give_up = [&](std::string_view reason) {
    peer.has_stopped = true;
    connections_->end(peer.connection_slot, reason);
  };
  if (now - peer.moved_at >= options_.give_up_after) give_up("it stopped reading");
  if (now - arriving.moved_at >= options_.give_up_after) give_up("it began a message and sent no more of it");
  expire_at_ = std::min(expire_at_, now + options_.give_up_after / 8);
}

bool Transport::has_any(Pendings which) const {
  return std::ranges::any_of(busy_, [&](std::uint32_t index) {
    return which == Pendings::all ? !peers_[index].is_idle() : peers_[index].is_owing();
  });
}

void Transport::take_leave() {
  is_leaving_ = true;
  connections_->take_leave();
}

void Transport::tell_all() {
  for (std::uint32_t index = 0; index < peers_.size(); ++index) {
    if (peers_[index].connection_slot == kNone) continue;
    Connection& to = connections_->peer(peers_[index].connection_slot);
    if (to.reader.untold() == 0) continue;
    to.reader.tell();
    to.alert();
  }
}

bool Transport::arm() {
  std::uint32_t liar = kNone;
  connections_->watch().for_each_watched([&](std::uint32_t slot) {
    Connection& peer = connections_->peer(slot);
    if (peer.reader.untold() != 0) {
      peer.reader.tell();
      peer.alert();
    }
    // Nobody awaits messages that were sent without an outcome, so no pass checks whether they were read. They must not
    // keep the engine awake. If a message awaits completion or room, progress is news and needs another pass.
    const std::uint32_t index = peers_.at_connection(slot);
    const bool is_awaited = index != kNone && !peers_[index].is_idle();
    if (!is_awaited && !peer.writer.look()) [[unlikely]]
      liar = slot;
  });
  if (liar == kNone) [[likely]]
    return connections_->watch().arm();
  connections_->refuse_reader(liar);
  return false;
}

}  // namespace fairlead::shm
