// Who has a place in the table of peers, and who gives way. A session that nobody has used for long is worth no more
// than what it costs to open the next one, so it may be forgotten: its peer is told, and nothing is lost.
//
//   long unused    (forget_after): forgotten when others come, a few at a time; nobody is woken for it
//   table full     the host that holds most gives way, its peers in turn, those first that were unused for
//   give_up_after.
//                  One that holds an eighth of the table cannot keep its places by using them, unless for messages of
//                  ours
//   half open      as many hellos with a cookie as fit; the host that has most of them gives way, its oldest first
//
// A peer is forgotten when the engine is told of it (next_notice), not before: until then its handle is good, and if it
// is used after all it stays.

#include <algorithm>
#include <new>

#include "base/rare.hpp"
#include "link/link_state.hpp"

namespace fairlead::link {
namespace {

constexpr int kSweptAtATime = 2;
constexpr int kLooks = 16;                 // for one that may go
constexpr std::uint32_t kCloseCopies = 2;  // nobody will be here to say it again
constexpr std::size_t kReserveMost = 64;   // places kept free: who goes is gone only when the engine has heard of it

}  // namespace

Peer* Link::State::add_peer(const base::SocketAddress& address, std::uint32_t datagram_size_max, base::Instant now) {
  sweep(now);
  if (places.size() + std::min<std::size_t>(kReserveMost, options.peers_max / 16) >= options.peers_max)
    make_room(address, now);
  Peer* peer = peers.add(address, options.reassembly_slots);
  if (peer == nullptr) return nullptr;
  try {
    places.add(*peer);
  } catch (const std::bad_alloc&) {
    peers.remove(*peer);
    throw;
  }
  peer->last_sent = now;
  peer->path_datagram_max = datagram_size_max;
  set_datagram_size(*peer, {});
  return peer;
}

/// Again. Without memory for that it stays until its session ends, and gives way to nobody.
void Link::State::take_place(Peer& peer) noexcept try { places.add(peer); } catch (const std::bad_alloc&) {
}

/// A host that we do not know may take half of the table.
Peer* Link::State::add_stranger(const base::SocketAddress& address, std::uint32_t datagram_size_max,
                                base::Instant now) {
  if (places.size_of(address) >= std::max(options.peers_max / 2, 1U)) {
    make_room(address, now);
    return nullptr;
  }
  return add_peer(address, datagram_size_max, now);
}

void Link::State::sweep(base::Instant now) {
  for (int i = 0; i < std::min<int>(kSweptAtATime, static_cast<int>(peers.slots())); ++i) {
    swept = (swept + 1) % peers.slots();
    Peer* peer = peers.at(swept);
    const bool is_early = base::rare("link: an unused peer is forgotten early");
    if (peer != nullptr && is_unused(*peer, now, is_early ? options.give_up_after : options.forget_after))
      let_go(*peer);
  }
}

/// For a peer at this address.
void Link::State::make_room(const base::SocketAddress& address, base::Instant now) {
  for (int look = 0; look < kLooks; ++look) {
    Peer* peer = places.oldest_of_largest();
    if (peer == nullptr) return;
    if (is_unused(*peer, now, options.give_up_after)) return let_go(*peer);
    const std::size_t held = places.size_of(peer->address);
    const bool is_hog = held > options.peers_max / 8 && held > 2 * places.size_of(address);
    if (is_hog && is_free_of_us(*peer)) {
      lose(*peer, Status::refused, now, true);
      return let_go(*peer);
    }
    places.pass_over(*peer);
  }
}

/// Nothing of ours would be lost with it.
bool Link::State::is_free_of_us(const Peer& peer) {
  return peer.state != Peer::State::opening && !peer.candidate && peer.window.in_flight() == 0 && !peer.has_queued();
}

bool Link::State::is_unused(const Peer& peer, base::Instant now, base::Duration span) {
  const bool is_pending = !is_free_of_us(peer) || !peer.is_quiet();
  return !is_pending && now - std::max(peer.last_heard, peer.last_sent) >= span;
}

void Link::State::let_go(Peer& peer) {
  if (!peer.place_hook.is_linked() || notices.size() >= kNoticesMax) return;
  places.remove(peer);
  notices.push({.kind = Notice::Kind::forgotten, .peer = PeerTable::handle(peer)});
}

/// The engine is about to be told. False if the peer stays.
bool Link::State::forget_unused(PeerHandle handle) {
  Peer* peer = peers.find(handle);
  if (peer == nullptr) return false;
  if (!is_free_of_us(*peer) || !peer->is_quiet()) {
    take_place(*peer);
    return false;
  }
  handed_out.what = HandedOut::What::nothing;
  say_close(*peer, wire::Flags::kIdle, kCloseCopies);
  forget(*peer);
  ++counters.peers_forgotten;
  return true;
}

// Half open ----------------------------------------------------------------------------------------------------------

/// Room for the hello of a peer that has none here yet.
void Link::State::make_room_half_open(const base::SocketAddress& address) {
  const bool is_host_full = half_open.size_of(address) >= options.half_open_each_max;
  if (!is_host_full && half_open.size() < options.half_open_max) return;
  Peer& oldest = is_host_full ? *half_open.oldest_of(address) : *half_open.oldest_of_largest();
  ++counters.half_open_dropped;
  drop_candidate(oldest);
  if (!oldest.is_known_to_engine) forget(oldest);
}

}  // namespace fairlead::link
