#include "link/link.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <new>
#include <utility>

#include "base/ensure.hpp"
#include "link/link_state.hpp"

namespace fairlead::link {

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
  options.packet_threshold = std::max(options.packet_threshold, 1U);
  options.resends_in_a_row = std::max(options.resends_in_a_row, 1U);
  return options;
}

Link::State::State(const LinkOptions& its_options, std::uint64_t its_epoch, std::uint64_t seed,
                   std::optional<SealSettings> its_sealing)
    : options(in_range(its_options)),
      epoch(its_epoch == 0 ? 1 : its_epoch),
      sealing(std::move(its_sealing)),
      tokens(seed, its_epoch),
      secrets(~seed, its_epoch),
      cookies(secrets),
      hotel(options.rooms_max),
      messages(options.messages_max),
      parts_room(options.parts_bytes),
      peers(options.peers_max, secrets.next()),
      places(secrets.next_key()),
      half_open(secrets.next_key()),
      senders_free(static_cast<std::uint32_t>(
          std::clamp<std::uint64_t>(options.receive_buffer_bytes / options.window_bytes, 1, 8))),
      grants_most(static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
          options.receive_buffer_bytes / 2 / (options.datagram_size_max + options.segment_overhead), 1, 8))),
      answer_budget(secrets.next_key(), options.answers_each_per_second, options.answers_per_second),
      handshake_budget(secrets.next_key(), options.handshakes_each_per_second, options.handshakes_per_second),
      change_budget(secrets.next_key(), options.handshakes_each_per_second, options.handshakes_per_second) {
  if (!has_room_for_news()) throw std::bad_alloc();
  if (!sealing) return;
  staging = std::make_unique<std::byte[]>(kStagingBytes);
  opened = std::make_unique<std::byte[]>(kTrainBytesMost);
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
    if (!state_->has_room_for_news()) throw std::bad_alloc();
    added = state_->add_peer(address, datagram_size_max, now);
  } catch (const std::bad_alloc&) {
    return std::unexpected(Error{Status::no_memory, ENOMEM, {}});
  }
  if (added == nullptr) {
    return std::unexpected(
        Error{Status::no_memory, 0,
              fmt::format("no place for peer {}: all {} are taken, raise peers_max or disconnect some",
                          address.to_string(), state_->options.peers_max)});
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
  state_->handed_out.what = State::HandedOut::What::nothing;
  peer->path_datagram_max = bytes;
  state_->set_datagram_size(*peer, now);
}

void Link::hint_datagram_size(PeerHandle handle, std::uint32_t bytes, base::Instant now) {
  ++state_->counters.size_hints;
  Peer* peer = state_->peers.find(handle);
  if (peer == nullptr || peer->state != Peer::State::open) return;
  state_->handed_out.what = State::HandedOut::What::nothing;
  peer->mtu.on_hint(bytes, now);
  state_->follow_mtu(*peer, now);
}

PeerFacts Link::facts(PeerHandle handle) const {
  const Peer* peer = state_->peers.find(handle);
  return peer == nullptr ? PeerFacts{} : state_->facts(*peer);
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
  return peer == nullptr || state_->is_eager(*peer);
}

PeerFacts Link::State::facts(const Peer& peer) const {
  PeerFacts facts;
  facts.address = peer.address;
  facts.epoch = peer.theirs.epoch;
  facts.is_connected = peer.state == Peer::State::open;
  facts.is_sealed = peer.sealed != nullptr;
  if (peer.sealed) facts.key_epoch = peer.sealed->keys.epoch();
  facts.round_trip = peer.round_trip.smoothed();
  facts.round_trip_min = peer.round_trip.least();
  facts.resend_after = facts.is_connected ? resend_after(peer) : hello_after(peer);
  facts.last_heard = peer.last_heard;
  facts.opening_since = peer.opening_since;
  facts.segments_in_flight = peer.window.in_flight();
  facts.bytes_in_flight = peer.bytes_in_flight;
  facts.bytes_in_flight_max = std::min(peer.bytes_limit[0], peer.congestion.bytes());
  facts.messages_queued = peer.messages_open + peer.queued_messages[0] + peer.queued_messages[1];
  facts.messages_arriving = peer.reassembly.open_count();
  facts.datagram_size = peer.datagram_size;
  return facts;
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
    visit(state_->facts(*peer));
    --most;
  }
}

Status Link::submit(PeerHandle peer, const Outgoing& message, base::Instant now, Reference* reference) {
  return state_->submit(peer, message, now, reference);
}

bool Link::cancel(PeerHandle peer, Reference reference, std::uint64_t cookie) {
  return state_->cancel(peer, reference, cookie);
}

void Link::receive(const base::SocketAddress& from, std::span<const std::byte> bytes, base::Instant now,
                   std::uint32_t datagram_size_max) {
  state_->receive(from, bytes, now, datagram_size_max);
}

std::optional<Delivery> Link::next_delivery() {
  return state_->next_delivery();
}

void Link::set_target(PeerHandle handle, std::uint32_t reassembly, std::uint64_t target) {
  if (Peer* peer = state_->peers.find(handle)) peer->reassembly.set_target(reassembly, target);
}

bool Link::has_news() const {
  return !state_->outcomes.empty() || !state_->notices.empty();
}
bool Link::has_loss() const {
  return state_->losses_untold != 0;
}
std::optional<Outcome> Link::next_outcome() {
  return state_->outcomes.take();
}
std::optional<Notice> Link::next_notice() {
  while (auto notice = state_->notices.take()) {
    state_->losses_untold -= notice->kind == Notice::Kind::lost;
    if (notice->kind != Notice::Kind::forgotten || state_->forget_unused(notice->peer)) return notice;
  }
  return std::nullopt;
}

bool Link::next_train(base::Instant now, std::uint32_t train_bytes_max, std::uint32_t train_datagrams_max,
                      Train& train) {
  return state_->next_train(now, train_bytes_max, train_datagrams_max, train);
}

void Link::take_back(const Train& train, base::Instant now) {
  state_->take_back(train, now);
}

void Link::expire(base::Instant now) {
  state_->handed_out.what = State::HandedOut::What::nothing;
  state_->expire(now);
}

base::Instant Link::next_deadline() const {
  const base::Instant timer = state_->timers.empty() ? base::kNever : state_->timers.begin()->timer_at;
  return state_->is_crowded() ? std::min(timer, state_->grants_deadline()) : timer;
}

void Link::set_keyring(std::shared_ptr<const seal::Keyring> ring) {
  ENSURE(state_->sealing && ring, "a keyring for a link that does not seal");
  state_->sealing->ring = std::move(ring);
}

const TurnedAway& Link::turned_away() const {
  return state_->turned_away;
}

void Link::unreachable(const base::SocketAddress& address, Obstacle obstacle, base::Instant now) {
  Peer* peer = state_->peers.find(address);
  state_->handed_out.what = State::HandedOut::What::nothing;
  if (peer == nullptr) return;
  if (obstacle == Obstacle::not_let_out) peer->not_let_out_at = now;
  if (obstacle == Obstacle::not_let_out || peer->state != Peer::State::opening || !state_->has_room_for_news()) return;
  peer->has_no_route = obstacle == Obstacle::no_route;
  state_->lose(*peer, peer->has_no_route ? Status::unreachable : Status::refused, now, true);
}

void Link::disconnect(PeerHandle handle, base::Instant now) {
  if (Peer* peer = state_->peers.find(handle)) state_->disconnect(*peer, 0, 1, now);
}

void Link::expel(PeerHandle handle, base::Instant now) {
  if (Peer* peer = state_->peers.find(handle)) state_->expel(*peer, now);
}

std::size_t Link::take_leave(base::Instant) {
  state_->is_leaving = true;
  state_->handed_out.what = State::HandedOut::What::nothing;
  std::size_t unheard = 0;
  for (std::uint32_t slot = 0; slot < state_->peers.slots(); ++slot) {
    Peer* const peer = state_->peers.at(slot);
    if (peer == nullptr || peer->state != Peer::State::open) continue;
    ++unheard;
    if (state_->strays.size() < State::kStraysMax) state_->say_close(*peer, wire::Flags::kLeaves, 1);
  }
  return unheard;
}

void Link::disconnect_all(base::Instant now) {
  // Nobody will be here to say it again if it is lost.
  constexpr std::uint32_t kCopies = 2;
  for (std::uint32_t slot = 0; slot < state_->peers.slots(); ++slot) {
    if (Peer* peer = state_->peers.at(slot)) state_->disconnect(*peer, wire::Flags::kLeaves, kCopies, now);
  }
}

const LinkCounters& Link::counters() const {
  return state_->counters;
}
std::size_t Link::peer_count() const {
  return state_->peers.size();
}

}  // namespace fairlead::link
