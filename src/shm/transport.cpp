// Whom the transport knows: peers come, part, and are given up.

#include "shm/transport.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace fairlead::shm {
namespace {

constexpr base::Duration kSeekEvery = std::chrono::milliseconds(10);
constexpr std::uint64_t kPulledMax = 64ULL << 20;  // bytes: while we copy, our engine does nothing else

}  // namespace

Transport::Transport(std::unique_ptr<Connections> connections, const TransportOptions& options)
    : connections_(std::move(connections)), options_(options) {
  options_.copied_max = std::min(options_.copied_max, kBlockBytes);
}

std::optional<link::PeerHandle> Transport::find(const base::SocketAddress& address) const {
  const auto found = by_address_.find(address);
  if (found == by_address_.end()) return std::nullopt;
  return handle_of(found->second);
}

std::string Transport::reason(const base::SocketAddress& address) const {
  const auto found = reasons_.find(address);
  return found == reasons_.end() ? std::string() : found->second;
}

void Transport::remember_reason(const base::SocketAddress& address, const std::string& reason) {
  if (reasons_.size() < kReasonsMax || reasons_.contains(address)) reasons_[address] = reason;
}

std::optional<link::PeerHandle> Transport::seek(const base::SocketAddress& address, base::Instant now) {
  if (const auto known = find(address)) return known;
  if (is_leaving_) return std::nullopt;
  ask(address, {}, now);
  if (!options_.is_forced) return std::nullopt;
  const std::uint32_t index = make_peer(address);
  peers_[index]->seek_until = now + options_.connect_within;
  peers_[index]->seek_next = now + kSeekEvery;
  return handle_of(index);
}

std::optional<link::PeerHandle> Transport::meet(const base::SocketAddress& address, const base::SipKey& key,
                                                base::Instant now) {
  connections_->vouch(address, key);
  const auto known = find(address);
  if (known) peers_[known->slot - kFirstSlot]->key = key;
  if (!known || !is_open(*known)) ask(address, key, now);
  return known;
}

void Transport::ask(const base::SocketAddress& address, const std::optional<base::SipKey>& key, base::Instant now) {
  if (connections_->find(address) != Connections::kNone) return;
  const auto asked = connections_->ask(address, now, key);
  if (asked) {
    reasons_.erase(address);
    return;
  }
  remember_reason(address, asked.error().message);
  if (options_.is_forced && asked.error().status == Status::again) wanted_.push(address);
}

std::uint32_t Transport::make_peer(const base::SocketAddress& address) {
  const auto unused = std::ranges::find_if(peers_, [](const auto& peer) { return !peer->is_used; });
  const auto index = static_cast<std::uint32_t>(unused - peers_.begin());
  if (unused == peers_.end()) peers_.push_back(std::make_unique<Peer>());
  peers_[index]->address = address;
  peers_[index]->is_used = true;
  by_address_[address] = index;
  return index;
}

void Transport::open(std::uint32_t connection_slot, base::Instant now) {
  const base::SocketAddress& address = connections_->peer(connection_slot).address;
  const auto known = by_address_.find(address);
  const std::uint32_t index = known == by_address_.end() ? make_peer(address) : known->second;
  if (connection_slot >= by_connection_slot_.size()) by_connection_slot_.resize(connection_slot + 1, kNone);
  by_connection_slot_[connection_slot] = index;
  Peer& peer = *peers_[index];
  peer.connection_slot = connection_slot;
  peer.passed_seen = 0;
  peer.moved_at = now;
  reasons_.erase(address);
  notices_.push({.kind = link::Notice::Kind::connected, .peer = handle_of(index)});
  pump(peer, connections_->peer(connection_slot));
}

// Everything that is pending to the peer ends, each once.
void Transport::lose(std::uint32_t index, Status status, base::Instant now, link::Diagnosis diagnosis) {
  Peer& peer = *peers_[index];
  const link::PeerHandle handle = handle_of(index);
  const auto fail = [&](std::uint64_t cookie) {
    outcomes_.push({cookie, status});
    ++counters_.messages_failed;
  };
  for (; !peer.pending.empty(); peer.pending.pop()) {
    const Pending& first = peer.pending.front();
    if (first.owner == kNone) {
      fail(first.cookie);
    } else {
      lost_.push({first.cookie, first.owner, first.length, status});
      ++counters_.messages_failed;
    }
  }
  for (auto* queue : {&peer.shorts, &peer.longs}) {
    for (; !queue->empty(); queue->pop()) {
      if (queue->front().message.wants_outcome) fail(queue->front().message.cookie);
      release(queue->front());
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
  by_address_.erase(peer.address);
  // The address stays, for whoever reads the notices.
  const base::SocketAddress address = peer.address;
  const std::uint32_t generation = peer.generation + 1;
  peer = Peer();
  peer.address = address;
  peer.generation = generation == 0 ? 1 : generation;
}

void Transport::make_busy(std::uint32_t index, base::Instant now) {
  Peer& peer = *peers_[index];
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
    Peer& peer = *peers_[index];
    if (!peer.is_awaited()) {
      peer.is_busy = false;
      busy_[i] = busy_.back();
      busy_.pop_back();
      continue;
    }
    look_after(index, now);
  }
}

// Asks again for a peer that is not there yet; gives up one that does not come, or reads no more.
void Transport::look_after(std::uint32_t index, base::Instant now) {
  Peer& peer = *peers_[index];
  if (peer.connection_slot == kNone) {
    if (now >= peer.seek_until) return lose(index, Status::unreachable, now);
    if (now >= peer.seek_next) {
      peer.seek_next = now + kSeekEvery;
      ask(peer.address, peer.key, now);
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
  if (now - peer.moved_at >= options_.give_up_after) give_up(peer, "it has stopped to read");
  if (now - arriving.moved_at >= options_.give_up_after) give_up(peer, "it has begun a message and does not go on");
  expire_at_ = std::min(expire_at_, now + options_.give_up_after / 8);
}

void Transport::give_up(Peer& peer, std::string_view reason) {
  peer.has_stopped = true;
  connections_->end(peer.connection_slot, reason);
}

bool Transport::is_quiet() const {
  return std::ranges::all_of(busy_, [&](std::uint32_t index) { return peers_[index]->is_idle(); });
}

void Transport::take_leave() {
  is_leaving_ = true;
  connections_->take_leave();
}

void Transport::tell_all() {
  for (const auto& peer : peers_) {
    if (peer->connection_slot == kNone) continue;
    Connection& to = connections_->peer(peer->connection_slot);
    if (to.reader.untold() == 0) continue;
    to.reader.tell();
    to.alert();
  }
}

bool Transport::arm() {
  std::uint32_t liar = kNone;
  connections_->for_each_watched([&](std::uint32_t slot) {
    Connection& peer = connections_->peer(slot);
    if (peer.reader.untold() != 0) {
      peer.reader.tell();
      peer.alert();
    }
    // What was sent without an outcome is awaited by nobody, so no pass looks how far it has been read. It must not
    // keep us awake as news. But where something waits for its end, or for room, it is news: a pass has to come.
    const std::uint32_t index = by_connection_slot_[slot];
    const bool is_awaited = index != kNone && !peers_[index]->is_idle();
    if (!is_awaited && !peer.writer.look()) [[unlikely]]
      liar = slot;
  });
  if (liar == kNone) [[likely]]
    return connections_->arm();
  refuse_reader(liar);
  return false;
}

// Receiving -----------------------------------------------------------------------------------------------------------

// Of a message that lies in the sender's arena: false if it does not.
bool Transport::find_payload(const Connection& from) {
  const std::uint64_t size = record_.message_bytes, place = record_.place;
  if (from.arena == nullptr || !record_.payload.empty() || size == 0 || size > kPulledMax || place > from.arena_bytes ||
      size > from.arena_bytes - place)
    return false;
  delivery_.bytes = {from.arena->head() + place, size};
  return true;
}

void Transport::deliver_whole(link::PeerHandle from, std::span<const std::byte> bytes) {
  delivery_.peer = from;
  delivery_.bytes = bytes;
  delivery_.size = bytes.size();
  delivery_.offset = 0;
  delivery_.reassembly = link::Delivery::kWhole;
  delivery_.is_first = delivery_.is_last = true;
  delivery_.target = 0;
}

// Fills the delivery. False if the record is none, or does not continue what came before it.
bool Transport::read_record(std::uint32_t index, const RingReader::Record& record) {
  wire::ShmKind kind{};
  if (!wire::decode_shm_envelope(record.body, kind, delivery_.envelope)) return false;
  if (wire::is_whole(kind)) [[likely]] {
    deliver_whole(handle_of(index), record.body.subspan(wire::shm_head_bytes(kind)));
    counters_.bytes_delivered += delivery_.size;
    ++counters_.messages_delivered;
    return true;
  }
  return read_part(index, record);
}

// A message that lies elsewhere, or a piece of one that comes in several.
bool Transport::read_part(std::uint32_t index, const RingReader::Record& record) {
  if (!wire::decode_shm(record.body, record_)) return false;
  delivery_.peer = handle_of(index);
  delivery_.bytes = record_.payload;
  counters_.bytes_delivered +=
      record_.kind == wire::ShmKind::by_reference ? record_.message_bytes : record_.payload.size();
  Arriving& arriving = peers_[index]->arriving;
  switch (record_.kind) {
    case wire::ShmKind::by_reference:
      if (!find_payload(connections_->peer(peers_[index]->connection_slot))) return false;
      delivery_.envelope = record_.envelope;
      deliver_whole(delivery_.peer, delivery_.bytes);
      ++counters_.messages_delivered;
      return true;
    case wire::ShmKind::inlined:
    case wire::ShmKind::ordered:
    case wire::ShmKind::tagged:
    case wire::ShmKind::whole:
    case wire::ShmKind::batch:
      return false;  // taken before
    case wire::ShmKind::first:
      if (arriving.is_under_way) return false;
      arriving = {.is_under_way = true, .envelope = record_.envelope, .size = record_.message_bytes, .moved_at = now_};
      make_busy(index, now_);
      break;
    case wire::ShmKind::next:
      if (!arriving.is_under_way || record_.payload.empty()) return false;
      break;
  }
  if (record_.payload.size() > arriving.size - arriving.done) return false;
  delivery_.envelope = arriving.envelope;
  delivery_.size = arriving.size;
  delivery_.offset = arriving.done;
  delivery_.reassembly = 0;
  delivery_.is_first = record_.kind == wire::ShmKind::first;
  delivery_.target = arriving.target;
  arriving.done += record_.payload.size();
  delivery_.is_last = arriving.done == arriving.size;
  arriving.is_under_way = !delivery_.is_last;
  if (delivery_.is_last) ++counters_.messages_delivered;
  return true;
}

}  // namespace fairlead::shm
