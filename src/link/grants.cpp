#include "link/grants.hpp"

#include <algorithm>

#include "base/rare.hpp"

namespace fairlead::link {
namespace {

constexpr base::Duration kRemembered = 10ms;  // how long a sender of long messages counts as one
constexpr base::Duration kUsedWithin = 1ms;   // lifetime of an unused grant
constexpr std::uint64_t kCreditBytes = 1024;

}  // namespace

Grants::Grants(LinkContext& context)
    : context_(context),
      senders_free_(static_cast<std::uint32_t>(
          std::clamp<std::uint64_t>(context.options.receive_buffer_bytes / context.options.window_bytes, 1, 8))),
      most_(static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
          context.options.receive_buffer_bytes / 2 / context.options.charge(context.options.datagram_size_max), 1,
          8))) {}

std::uint64_t Grants::turn_bytes() const {
  const std::uint32_t senders = std::clamp(senders_, 1U, most_);
  return std::min<std::uint64_t>(context_.options.granted_bytes / (is_crowded() ? senders : most_),
                                 wire::kDatagramSizeMost);
}

std::uint16_t Grants::credits_in_crowd(const Peer& peer) const {
  return peer.grant == Peer::Grant::given ? static_cast<std::uint16_t>(turn_bytes() / kCreditBytes + 1) : 1;
}

/// Counts a segment of a long message.
void Grants::on_bulk(Peer& peer, const wire::Frame& frame, base::Instant now) {
  peer.bulk_at = now;
  if (bulk_.empty() || &bulk_.back() != &peer) {
    if (!peer.bulk_hook.is_linked()) ++senders_;
    peer.bulk_hook.unlink();
    bulk_.push_back(peer);
  }
  if (!is_crowded()) [[likely]]
    return;
  if (peer.grant == Peer::Grant::given) {
    const auto size =
        static_cast<std::int64_t>(frame.payload.size() + wire::kSegmentHeaderBytes + context_.options.segment_overhead);
    peer.grant_left -= size;
    const bool asks = (frame.header.flags & wire::Flags::kAsks) != 0;
    if (peer.grant_left < size || !asks) {  // another segment would not fit
      end(peer);
      if (asks) on_asked(peer, now);
    }
  }
  give(now);
}

void Grants::on_asked(Peer& peer, base::Instant now) {
  if (!is_crowded()) {  // there is nothing to wait for
    context_.agenda.answer_at_once(peer);
    return;
  }
  if (peer.grant != Peer::Grant::none) return;
  peer.grant = Peer::Grant::waiting;
  waiting_.push_back(peer);
  give(now);
}

void Grants::give(base::Instant now) {
  forget_quiet_senders(now);
  while (!given_.empty() && now - given_.front().granted_at >= kUsedWithin) {
    ++context_.counters.grants_expired;
    end(given_.front());
  }
  while (!waiting_.empty() && (out_ < most_ || !is_crowded())) {
    Peer& next = waiting_.front();
    waiting_.pop_front();
    next.grant = Peer::Grant::none;
    if (is_crowded()) {
      next.grant = Peer::Grant::given;
      next.granted_at = now;
      next.grant_left = static_cast<std::int64_t>(turn_bytes());
      given_.push_back(next);
      ++out_;
      ++context_.counters.grants_given;
    }
    if (base::rare("link: a grant is not told")) continue;
    context_.agenda.answer_at_once(next);
  }
}

void Grants::end(Peer& peer) {
  peer.grant_hook.unlink();
  peer.grant = Peer::Grant::none;
  --out_;
}

void Grants::forget_quiet_senders(base::Instant now) {
  while (!bulk_.empty() && now - bulk_.front().bulk_at >= kRemembered) {
    bulk_.pop_front();
    --senders_;
  }
}

void Grants::leave(Peer& peer) {
  if (peer.bulk_hook.is_linked()) --senders_;
  peer.bulk_hook.unlink();
  if (peer.grant == Peer::Grant::given) --out_;
  peer.grant_hook.unlink();
  peer.grant = Peer::Grant::none;
  peer.granted = Peer::kNoBound;
  peer.has_asked = false;
}

/// The earliest expiry of a grant, or of a sender that makes the crowd.
base::Instant Grants::deadline() const {
  if (!is_crowded() || waiting_.empty()) return base::kNever;
  base::Instant at = bulk_.front().bulk_at + kRemembered;
  if (!given_.empty()) at = std::min(at, given_.front().granted_at + kUsedWithin);
  return at;
}

void Grants::take(Peer& peer, std::uint16_t credits, base::Instant now) {
  peer.granted = credits == 0 ? Peer::kNoBound : (credits - 1) * kCreditBytes;
  if (peer.granted != 0) peer.has_asked = false;
  context_.agenda.make_ready(peer);
  if (peer.granted == 0 && peer.has_bulk_queued()) ask(peer, now);
}

/// Asks for a turn if the waiting messages are held back and no segment in flight can say so.
void Grants::ask(Peer& peer, base::Instant now) {
  if (peer.has_asked || peer.window.in_flight() != 0 || !peer.has_bulk_queued() || peer.granted != 0) return;
  peer.has_asked = true;
  peer.asked_at = now;
  ++context_.counters.turns_asked;
  context_.agenda.answer_at_once(peer);
  context_.agenda.wake_by(peer, now + context_.timeouts.ask_again_after(peer));
}

}  // namespace fairlead::link
