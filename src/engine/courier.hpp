#pragma once
// The link, with the lane to engines of the same host beside it where there is one. A message goes by the way that its
// peer's handle names; what comes back looks the same from either. What only a network needs goes to the link as it is.
//
// There is no order between messages, so a peer may be reached both ways at a time: what was begun one way ends there.

#include <memory>
#include <optional>
#include <utility>

#include "engine/lane.hpp"
#include "link/link.hpp"

namespace fairlead::engine {

class Courier : private link::Link {
 public:
  Courier(const link::LinkOptions& options, std::uint64_t epoch, std::uint64_t seed, std::unique_ptr<Lane> lane)
      : Link(options, epoch, seed), lane_(std::move(lane)) {}

  const link::Link& link() const { return *this; }
  /// Null if peers of this host are reached as all others.
  Lane* lane() { return lane_.get(); }
  const Lane* lane() const { return lane_.get(); }

  Status submit(link::PeerHandle peer, const link::Outgoing& message, base::Instant now) {
    return Lane::has(peer) ? lane_->submit(peer, message, now) : Link::submit(peer, message, now);
  }
  bool cancel(link::PeerHandle peer, std::uint64_t cookie) {
    return Lane::has(peer) ? lane_->cancel(peer, cookie) : Link::cancel(peer, cookie);
  }
  const base::SocketAddress& address(link::PeerHandle peer) const {
    return Lane::has(peer) ? lane_->address(peer) : Link::address(peer);
  }
  void set_target(link::PeerHandle peer, std::uint32_t reassembly, std::uint64_t target) {
    Lane::has(peer) ? lane_->set_target(peer, target) : Link::set_target(peer, reassembly, target);
  }
  /// Whether there is an outcome, a notice, or a lost message of the lane's own.
  bool has_news() const { return (lane_ && lane_->has_news()) || Link::has_news(); }
  std::optional<link::Outcome> next_outcome() {
    auto outcome = lane_ ? lane_->next_outcome() : std::nullopt;
    return outcome ? outcome : Link::next_outcome();
  }
  std::optional<link::Notice> next_notice() {
    auto notice = lane_ ? lane_->next_notice() : std::nullopt;
    return notice ? notice : Link::next_notice();
  }

  // Of the link alone.
  using Link::counters;
  using Link::disconnect;
  using Link::disconnect_all;
  using Link::expire;
  using Link::facts;
  using Link::find;
  using Link::for_each_peer;
  using Link::is_eager;
  using Link::next_deadline;
  using Link::next_delivery;
  using Link::next_train;
  using Link::peer;
  using Link::receive;
  using Link::set_datagram_size_max;
  using Link::take_back;
  using Link::unreachable;

 private:
  std::unique_ptr<Lane> lane_;
};

}  // namespace fairlead::engine
