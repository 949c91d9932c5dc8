#include "link/link.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <new>
#include <utility>

#include "base/ensure.hpp"
#include "base/rare.hpp"
#include "link/link_state.hpp"
#include "link/reference.hpp"

namespace fairlead::link {
namespace {

constexpr std::uint64_t kMessageSizeMost = std::uint64_t{1} << 48;

std::uint64_t bytes_in(std::span<const iovec> pieces) {
  std::uint64_t sum = 0;
  for (const iovec& piece : pieces) sum += piece.iov_len;
  return sum;
}

PeerFacts facts_of(const Peer& peer, const Timeouts& timeouts) {
  PeerFacts facts;
  facts.address = peer.address;
  facts.epoch = peer.theirs.epoch;
  facts.is_connected = peer.state == Peer::State::open;
  facts.is_sealed = peer.sealed != nullptr;
  if (peer.sealed) facts.key_epoch = peer.sealed->keys.epoch();
  facts.round_trip = peer.round_trip.smoothed();
  facts.round_trip_min = peer.round_trip.least();
  facts.resend_after = facts.is_connected ? timeouts.resend_after(peer) : timeouts.hello_after(peer);
  facts.last_heard = peer.last_heard;
  facts.opening_since = peer.opening_since;
  facts.segments_in_flight = peer.window.in_flight();
  facts.bytes_in_flight = peer.bytes_in_flight;
  facts.bytes_in_flight_max = std::min(peer.bytes_limit[0], peer.congestion.bytes());
  facts.messages_queued = peer.messages_open + peer.queued_messages[0] + peer.queued_messages[1];
  facts.messages_arriving = peer.reassembly.open_count();
  facts.datagram_size = peer.datagram_size;
  facts.longest_probe = peer.longest_probe;
  facts.is_translated = peer.introduction.is_translated;
  facts.release = peer.introduction.release;
  return facts;
}

}  // namespace

LinkOptions in_range(LinkOptions options) {
  constexpr auto kDatagramLeast = static_cast<std::uint32_t>(wire::kDatagramSizeLeast);
  constexpr auto kDatagramMost = static_cast<std::uint32_t>(wire::kDatagramSizeMost);
  options.datagram_size_max = std::clamp(options.datagram_size_max, kDatagramLeast, kDatagramMost);
  options.command_segment_max =
      std::clamp(options.command_segment_max, kDatagramLeast, static_cast<std::uint32_t>(Block::kBytes));
  options.embedded_max = std::min(options.embedded_max, 1024U);
  options.tiny_max = std::min(options.tiny_max, options.embedded_max);
  options.window_segments = std::bit_floor(std::clamp(options.window_segments, 64U, 4096U));
  options.window_bytes = std::max<std::uint64_t>(options.window_bytes, 65'536);
  options.reassembly_slots = std::clamp(options.reassembly_slots, 1U, 64U);
  options.peers_max = std::min(options.peers_max, PeerTable::kPlacesMost);
  options.parts_bytes = std::max<std::uint64_t>(options.parts_bytes, wire::kDatagramSizeMost);
  options.rooms_max = std::min(options.rooms_max, (1U << kRoomBits) - 1);
  options.packet_threshold = std::max(options.packet_threshold, 1U);
  options.resends_in_a_row = std::max(options.resends_in_a_row, 1U);
  return options;
}

Link::State::State(const LinkOptions& options, std::uint64_t epoch, std::uint64_t seed,
                   std::optional<SealSettings> its_sealing)
    : sealing(std::move(its_sealing)),
      secrets(~seed, epoch),
      context(in_range(options), sealing ? static_cast<std::uint32_t>(wire::kTagBytes) : 0),
      peers(context.options.peers_max, secrets.next()),
      greetings(context, sealing, epoch == 0 ? 1 : epoch, TokenSource(seed, epoch)) {
  if (!sessions.has_room_for_news()) throw std::bad_alloc();
}

Link::Link(const LinkOptions& options, std::uint64_t epoch, std::uint64_t seed, std::optional<SealSettings> sealing)
    : state_(std::make_unique<State>(options, epoch, seed, std::move(sealing))) {}

Link::~Link() = default;

Result<PeerHandle> Link::peer(const base::SocketAddress& address, std::uint32_t datagram_size_max, base::Instant now) {
  if (Peer* known = state_->peers.find(address)) {
    known->is_known_to_engine = true;
    return PeerTable::handle(*known);
  }
  if (datagram_size_max < wire::kDatagramSizeLeast) {
    return std::unexpected(
        Error{Status::invalid, 0,
              fmt::format("the path to {} carries {} bytes per datagram, {} are needed: raise the interface's MTU",
                          address.to_string(), datagram_size_max, wire::kDatagramSizeLeast)});
  }
  Peer* added = nullptr;
  try {
    if (!state_->sessions.has_room_for_news()) throw std::bad_alloc();
    added = state_->sessions.add_peer(address, datagram_size_max, now);
  } catch (const std::bad_alloc&) {
    return std::unexpected(Error{Status::no_memory, ENOMEM, {}});
  }
  if (added == nullptr) {
    return std::unexpected(
        Error{Status::no_memory, 0,
              fmt::format("no place for peer {}: all {} are taken, raise peers_max or disconnect some",
                          address.to_string(), state_->context.options.peers_max)});
  }
  added->is_known_to_engine = true;
  return PeerTable::handle(*added);
}

std::optional<PeerHandle> Link::find(const base::SocketAddress& address) const {
  const Peer* peer = state_->peers.find(address);
  return peer == nullptr ? std::nullopt : std::optional(PeerTable::handle(*peer));
}

void Link::set_datagram_size_max(PeerHandle handle, std::uint32_t bytes, base::Instant now) {
  Peer* peer = state_->peers.find(handle);
  if (peer == nullptr) return;
  state_->trains.forget_last();
  peer->path_datagram_max = bytes;
  state_->sizes.set_goal(*peer, now);
}

void Link::hint_datagram_size(PeerHandle handle, std::uint32_t bytes, base::Instant now) {
  ++state_->context.counters.size_hints;
  Peer* peer = state_->peers.find(handle);
  if (peer == nullptr || peer->state != Peer::State::open) return;
  state_->trains.forget_last();
  peer->mtu.on_hint(bytes, now);
  state_->sizes.follow(*peer, now);
}

PeerFacts Link::facts(PeerHandle handle) const {
  const Peer* peer = state_->peers.find(handle);
  return peer == nullptr ? PeerFacts{} : facts_of(*peer, state_->context.timeouts);
}

std::optional<base::SipKey> Link::pair_key(PeerHandle handle) const {
  const Peer* peer = state_->peers.find(handle);
  if (peer == nullptr || peer->state != Peer::State::open) return std::nullopt;
  const auto [low, high] = std::minmax(peer->ours.token, peer->theirs.token);
  const auto word = [key = base::SipKey{low, high}](std::uint64_t number) {
    return base::SipHash(key).add(number).value();
  };
  return base::SipKey{word(1), word(2)};
}

bool Link::is_eager(PeerHandle handle) const {
  const Peer* peer = state_->peers.find(handle);
  return peer == nullptr || state_->queues.is_eager(*peer);
}

bool Link::is_idle(PeerHandle handle) const {
  const Peer* peer = state_->peers.find(handle);
  return peer != nullptr && peer->state == Peer::State::open && !peer->has_queued() &&
         peer->granted == Peer::kNoBound && state_->queues.is_eager(*peer);
}

const base::SocketAddress& Link::address(PeerHandle handle) const {
  static const base::SocketAddress kNone;
  const Peer* peer = state_->peers.find(handle);
  return peer == nullptr ? kNone : peer->address;
}

void Link::for_each_peer(std::size_t most, const std::function<void(const PeerFacts&)>& visit) const {
  for (std::uint32_t slot = 0; slot < state_->peers.slots() && most > 0; ++slot) {
    const Peer* peer = state_->peers.at(slot);
    if (peer == nullptr) continue;
    visit(facts_of(*peer, state_->context.timeouts));
    --most;
  }
}

Status Link::State::take(Peer& peer, const Outgoing& message, Reference& reference) {
  LinkCounters& counters = context.counters;
  if (message.size > kMessageSizeMost) [[unlikely]]
    return Status::too_big;
  if (message.pieces.size() > kPiecesMax || bytes_in(message.pieces) < message.size) [[unlikely]]
    return Status::invalid;
  Status status = Status::again;
  const bool has_room = counters.messages_pending + context.news.outcomes() < context.options.messages_max &&
                        !(base::rare("link: a submit finds no room") && counters.messages_pending != 0);
  // Reserves what is needed until the message ends, so that no allocation can fail then.
  if (has_room && queues.has_memory_for(peer) && (peer.state != Peer::State::closed || sessions.has_room_for_news()))
      [[likely]]
    status = queues.add(peer, message, reference);
  if (status != Status::ok) [[unlikely]] {
    if (status == Status::again) ++counters.submits_refused;
    return status;
  }
  ++counters.messages_submitted;
  ++counters.messages_pending;
  counters.message_bytes_submitted += message.size;
  return Status::ok;
}

void Link::State::begin(Peer& peer, base::Instant now) {
  if (peer.state == Peer::State::closed) [[unlikely]] {
    if (sessions.is_leaving()) return sessions.lose(peer, Status::refused, now, true);
    sessions.begin_opening(peer, now);
  }
  context.agenda.make_ready(peer);
}

Status Link::submit(PeerHandle handle, const Outgoing& message, base::Instant now, Reference* reference) {
  Peer* const peer = state_->peers.find(handle);
  if (peer == nullptr) [[unlikely]]
    return Status::stale;
  Reference where = 0;
  const Status status = state_->take(*peer, message, where);
  if (reference != nullptr) *reference = where;
  if (status == Status::ok) [[likely]]
    state_->begin(*peer, now);
  return status;
}

std::size_t Link::send_short(PeerHandle handle, const ShortSend& send, base::Instant now,
                             std::span<OperationHandle> names) {
  Peer* const peer = state_->peers.find(handle);
  if (peer == nullptr) [[unlikely]]
    return 0;
  Outgoing message{.envelope = {.source_port = send.source_port, .target_port = send.target_port},
                   .pieces = {},
                   .owner = send.owner};
  std::size_t count = 0;
  for (const SendPart& part : send.parts) {
    if (part.length > state_->context.options.embedded_max) break;
    message.pieces = part.memory;
    message.size = part.length;
    message.cookie = part.cookie;
    Reference where = 0;
    if (state_->take(*peer, message, where) != Status::ok) break;
    const Segment& segment = *segment_of(where);
    names[count] = name_of(segment, segment.numbers - 1);
    names[count++].at = now;
  }
  if (count > 0) [[likely]]
    state_->begin(*peer, now);
  return count;
}

std::optional<Outcome> Link::end_early(std::uint32_t owner, OperationHandle name) {
  state_->trains.forget_last();
  return state_->shorts.end_early(owner, name);
}

std::optional<Outcome> Link::end_any_early(std::uint32_t owner, std::uint32_t& first) {
  state_->trains.forget_last();
  return state_->shorts.end_any_early(owner, first);
}

bool Link::mark_refused(PeerHandle handle, OperationHandle name, Status status) {
  const Peer* const peer = state_->peers.find(handle);
  return peer != nullptr && state_->shorts.mark_refused(*peer, name, status);
}

bool Link::is_owing() const {
  if (state_->context.counters.messages_pending == 0) return false;
  for (std::uint32_t slot = 0; slot < state_->peers.slots(); ++slot)
    if (const Peer* const peer = state_->peers.at(slot); peer != nullptr && SendQueues::is_owing_long(*peer))
      return true;
  return state_->shorts.are_owing();
}

std::uint64_t Link::count_pending(std::uint32_t owner) {
  return state_->shorts.count_pending(owner);
}

bool Link::cancel(PeerHandle handle, Reference reference, std::uint64_t cookie) {
  Peer* const peer = state_->peers.find(handle);
  state_->trains.forget_last();
  return peer != nullptr && state_->queues.cancel(*peer, reference, cookie);
}

bool Link::recall(PeerHandle handle, Reference reference, std::uint64_t cookie) {
  Peer* const peer = state_->peers.find(handle);
  state_->trains.forget_last();
  return peer != nullptr && state_->queues.recall(*peer, reference, cookie);
}

void Link::receive(const base::SocketAddress& from, std::span<const std::byte> bytes, base::Instant now,
                   std::uint32_t datagram_size_max) {
  state_->trains.forget_last();
  state_->receiver.receive(from, bytes, now, datagram_size_max);
}

std::optional<Delivery> Link::next_delivery() {
  return state_->receiver.next();
}

void Link::set_target(PeerHandle handle, std::uint32_t reassembly, std::uint64_t target) {
  if (Peer* peer = state_->peers.find(handle)) peer->reassembly.set_target(reassembly, target);
}

bool Link::has_news() const {
  return !state_->context.news.is_empty();
}
bool Link::has_loss() const {
  return state_->context.news.has_loss();
}
std::optional<Outcome> Link::next_outcome() {
  return state_->context.news.next_outcome();
}
std::optional<Notice> Link::next_notice() {
  while (auto notice = state_->context.news.next_notice()) {
    if (notice->kind != Notice::Kind::forgotten) return notice;
    state_->trains.forget_last();
    if (state_->sessions.forget_unused(notice->peer)) return notice;
  }
  return std::nullopt;
}

bool Link::next_train(base::Instant now, std::uint32_t train_bytes_max, std::uint32_t train_datagrams_max,
                      Train& train) {
  return state_->trains.next(now, train_bytes_max, train_datagrams_max, train);
}

void Link::take_back(const Train& train, base::Instant now) {
  state_->trains.take_back(train, now);
}

void Link::expire(base::Instant now) {
  state_->trains.forget_last();
  state_->expiry.expire(now);
}

base::Instant Link::next_deadline() const {
  return state_->expiry.next_deadline();
}

void Link::set_keyring(std::shared_ptr<const seal::Keyring> ring) {
  ENSURE(state_->sealing && ring, "a keyring for a link that does not seal");
  state_->sealing->ring = std::move(ring);
}

const TurnedAway& Link::turned_away() const {
  return state_->sessions.turned_away();
}

void Link::unreachable(const base::SocketAddress& address, Obstacle obstacle, base::Instant now, int send_errno) {
  Peer* peer = state_->peers.find(address);
  state_->trains.forget_last();
  if (peer == nullptr) return;
  peer->note({.what = obstacle, .at = now, .send_errno = send_errno});
  if (obstacle == Obstacle::not_let_out || peer->state != Peer::State::opening || !state_->sessions.has_room_for_news())
    return;
  const bool is_refused = obstacle == Obstacle::nobody_listens;
  state_->sessions.lose(*peer, is_refused ? Status::refused : Status::unreachable, now, true);
}

void Link::disconnect(PeerHandle handle, base::Instant now) {
  state_->trains.forget_last();
  if (Peer* peer = state_->peers.find(handle)) state_->sessions.disconnect(*peer, 0, 1, now);
}

void Link::expel(PeerHandle handle, base::Instant now) {
  state_->trains.forget_last();
  Peer* const peer = state_->peers.find(handle);
  if (peer != nullptr && state_->sessions.expel(*peer, now)) state_->receiver.forget_last();
}

std::size_t Link::take_leave(base::Instant) {
  state_->trains.forget_last();
  return state_->sessions.take_leave();
}

void Link::disconnect_all(base::Instant now) {
  // Two copies, because this engine will not be there to repeat a lost one.
  constexpr std::uint32_t kCopies = 2;
  state_->trains.forget_last();
  for (std::uint32_t slot = 0; slot < state_->peers.slots(); ++slot) {
    if (Peer* peer = state_->peers.at(slot)) state_->sessions.disconnect(*peer, wire::Flags::kLeaves, kCopies, now);
  }
}

const LinkCounters& Link::counters() const {
  return state_->context.counters;
}
std::size_t Link::peer_count() const {
  return state_->peers.size();
}

}  // namespace fairlead::link
