#include "link/places.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "base/rare.hpp"

namespace fairlead::link {
namespace {

constexpr int kSweptAtATime = 2;
constexpr int kLooks = 16;  // peers examined by make_room()
// places kept free: a forgotten peer's place is free only after the engine has fetched the notice
constexpr std::size_t kReserveMost = 64;

bool is_unused(const Peer& peer, base::Instant now, base::Duration span) {
  const bool is_pending = !Places::is_free_of_us(peer) || !peer.is_quiet();
  return !is_pending && now - std::max(peer.last_heard, peer.last_sent) >= span;
}

}  // namespace

Places::Places(LinkContext& context, PeerTable& peers, TokenSource& secrets)
    : context_(context), peers_(peers), places_(secrets.next_key()), half_open_(secrets.next_key()) {}

Peer* Places::add(const base::SocketAddress& address, base::Instant now) {
  return keep_new(peers_.add(address, context_.options.reassembly_slots), now);
}

Peer* Places::add_at(std::uint32_t slot, std::uint32_t generation, const base::SocketAddress& address,
                     base::Instant now) {
  return keep_new(peers_.add_at(slot, generation, address, context_.options.reassembly_slots), now);
}

Peer* Places::keep_new(Peer* peer, base::Instant now) {
  if (peer == nullptr) return nullptr;
  try {
    places_.add(*peer);
  } catch (const std::bad_alloc&) {
    peers_.remove(*peer);
    throw;
  }
  peer->last_sent = now;
  return peer;
}

void Places::keep(Peer& peer) noexcept try { places_.add(peer); } catch (const std::bad_alloc&) {
}

bool Places::is_scarce() const {
  const std::uint32_t most = context_.options.peers_max;
  return places_.size() + std::min<std::size_t>(kReserveMost, most / 16) >= most;
}

bool Places::is_half_held_by(const base::SocketAddress& address) const {
  return places_.size_of(address) >= std::max(context_.options.peers_max / 2, 1U);
}

void Places::sweep(base::Instant now) {
  for (int i = 0; i < std::min<int>(kSweptAtATime, static_cast<int>(peers_.slots())); ++i) {
    swept_ = (swept_ + 1) % peers_.slots();
    Peer* peer = peers_.at(swept_);
    const bool is_early = base::rare("link: an unused peer is forgotten early");
    if (peer != nullptr &&
        is_unused(*peer, now, is_early ? context_.options.give_up_after : context_.options.forget_after))
      let_go(*peer);
  }
}

Peer* Places::make_room(const base::SocketAddress& address, base::Instant now) {
  for (int look = 0; look < kLooks; ++look) {
    Peer* peer = places_.oldest_of_largest();
    if (peer == nullptr) return nullptr;
    if (is_unused(*peer, now, context_.options.give_up_after)) {
      let_go(*peer);
      return nullptr;
    }
    const std::size_t held = places_.size_of(peer->address);
    const bool is_hog = held > context_.options.peers_max / 8 && held > 2 * places_.size_of(address);
    if (is_hog && is_free_of_us(*peer)) return peer;
    places_.pass_over(*peer);
  }
  return nullptr;
}

bool Places::is_free_of_us(const Peer& peer) {
  return peer.state != Peer::State::opening && !peer.candidate && peer.window.in_flight() == 0 && !peer.has_queued();
}

void Places::let_go(Peer& peer) {
  if (!peer.place_hook.is_linked() || context_.news.is_full()) return;
  places_.remove(peer);
  context_.news.tell({.kind = Notice::Kind::forgotten, .peer = PeerTable::handle(peer)});
}

void Places::offer(Peer& peer, Peer::Candidate candidate) {
  if (!peer.candidate) {
    make_room_half_open(peer.address);
    half_open_.add(peer);
  }
  peer.candidate = std::move(candidate);
}

/// Makes room for a candidate of a peer that has none.
void Places::make_room_half_open(const base::SocketAddress& address) {
  const bool is_host_full = half_open_.size_of(address) >= context_.options.half_open_each_max;
  if (!is_host_full && half_open_.size() < context_.options.half_open_max) return;
  Peer& oldest = is_host_full ? *half_open_.oldest_of(address) : *half_open_.oldest_of_largest();
  ++context_.counters.half_open_dropped;
  drop_candidate(oldest);
  if (!oldest.is_known_to_engine) forget(oldest);
}

void Places::drop_candidate(Peer& peer) {
  if (!peer.candidate) return;
  peer.candidate.reset();
  peer.owes_hello_ack = false;
  half_open_.remove(peer);
}

void Places::forget(Peer& peer) {
  drop_candidate(peer);
  places_.remove(peer);
  peers_.remove(peer);
}

}  // namespace fairlead::link
