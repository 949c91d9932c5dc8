// Accepts peers at our socket. A peer must send its greeting soon, and a stranger must prove its identity. A user other
// than ours has a limited share of the slots, and few for half-open connections. There, the user's newest connection
// replaces its oldest, so a user locks out only itself.

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <new>

#include "shm/connections.hpp"

namespace fairlead::shm {
namespace {

constexpr int kAcceptedAtOnce = 32;
constexpr base::Duration kGreetWithin = std::chrono::seconds(2);
constexpr base::Duration kAcceptAgainAfter = std::chrono::milliseconds(100);
constexpr std::uint32_t kHalfOpenOfUser = 16;  // with at most four descriptors each
constexpr std::uint32_t kShareOfUser = 4;      // one in so many of all slots

bool is_half_open(Connection::State state) {
  return state == Connection::State::answering || state == Connection::State::claiming ||
         state == Connection::State::vouched;
}

}  // namespace

void Connections::accept_all(base::Instant now) {
  if (is_leaving_) return;
  for (int i = 0; i < kAcceptedAtOnce && has_room_for_events(); ++i) {
    auto socket = listener_.accept();
    if (!socket && (socket.error() == ECONNABORTED || socket.error() == EINTR)) continue;
    if (!socket && socket.error() != EAGAIN) pause_accepting(now);
    if (!socket) return;
    if (is_closed_) continue;
    if (!options_.admits(*socket)) {
      ++counters_.declined_user;
      continue;
    }
    const std::uint32_t slot = make_room(*socket) ? make_peer(std::move(*socket), now) : kNone;  // or no memory
    if (slot == kNone) {
      ++counters_.declined_full;
      continue;
    }
    peers_[slot].state = Connection::State::answering;
    expire_by(now + kGreetWithin);
    serve(slot);  // most peers have sent their greeting already
  }
}

// The process is out of descriptors, or the kernel out of memory. Stop listening for a while: pending connections would
// wake us again and again.
void Connections::pause_accepting(base::Instant now) {
  ++counters_.accepts_failed;
  accept_at_ = now + kAcceptAgainAfter;
  expire_by(accept_at_);
  waited_for_.watch(listener_.descriptor(), kListener, false);
}

/// Returns false if the user has all slots of its share and none can be replaced.
bool Connections::make_room(const Socket& newcomer) {
  if (newcomer.is_own()) return true;
  std::uint32_t all = 0, half_open = 0, oldest = kNone;
  for (std::uint32_t slot = 0; slot < peers_.size(); ++slot) {
    const Connection& peer = peers_[slot];
    if (peer.state == Connection::State::closed || peer.socket.credentials().user != newcomer.credentials().user)
      continue;
    ++all;
    if (!is_half_open(peer.state)) continue;
    ++half_open;
    if (oldest == kNone || peer.since < peers_[oldest].since) oldest = slot;
  }
  if (half_open < kHalfOpenOfUser && all < std::max(options_.peers_max / kShareOfUser, 1U)) return true;
  if (oldest == kNone) return false;
  ++counters_.declined_crowd;
  close(oldest);
  return true;
}

/// Ends handshakes that are too late, and answers strangers that have proven their identity.
void Connections::expire(base::Instant now) {
  expire_at_ = base::kNever;
  if (accept_at_ <= now) {
    accept_at_ = base::kNever;
    waited_for_.watch(listener_.descriptor(), kListener, !is_leaving_);
  }
  expire_by(accept_at_);
  for (std::uint32_t slot = 0; slot < peers_.size(); ++slot) {
    Connection& peer = peers_[slot];
    if (!has_room_for_events()) return expire_by(now + kAcceptAgainAfter);
    if (peer.state == Connection::State::vouched) {
      answer_claim(slot);
      continue;
    }
    const bool is_asking = peer.state == Connection::State::asking;
    if (!is_asking && !is_half_open(peer.state)) continue;
    const base::Instant due = peer.since + (is_asking ? kAnswerWithin : kGreetWithin);
    if (now < due) {
      expire_by(due);
      continue;
    }
    ++(peer.state == Connection::State::claiming ? counters_.declined_proof : counters_.declined_late);
    is_asking ? decline(slot, "it has not answered: is it stopped?") : close(slot);
  }
}

void Connections::answer_claim(std::uint32_t slot) try {
  const std::unique_ptr<Claim> claim = std::move(peers_[slot].claim);
  answer(slot, claim->greeting, claim->letter, peers_[slot].pair_key);
} catch (const std::bad_alloc&) {
  drop(slot);
}

// A stranger can clear others' bits in our doorbell and our sleep flag, so that nobody wakes us. This periodic look
// bounds the delay.
void Connections::look_at_everybody(base::Instant now) {
  constexpr base::Duration kEvery = std::chrono::milliseconds(10);
  watch_->remind_of_news();
  look_at_ = base::kNever;
  for (std::uint32_t slot = 0; slot < peers_.size(); ++slot) {
    const Connection& peer = peers_[slot];
    if (peer.state == Connection::State::open && !peer.socket.is_own()) look_at_ = now + kEvery;
  }
}

}  // namespace fairlead::shm
