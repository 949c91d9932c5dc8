#pragma once
// The link and the shared-memory transport behind one face, with the path below the link: everything that moves
// messages between engines. A message takes the transport that its peer's handle names; what comes back looks the same
// from either.
//
// Messages have no order among themselves, so a peer may be reached both ways at a time: what began one way ends there.

#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "link/link.hpp"
#include "path/path.hpp"
#include "shm/transport.hpp"
#include "transport/flight_log.hpp"
#include "transport/hot_peers.hpp"
#include "transport/offences.hpp"
#include "transport/route_cache.hpp"

namespace fairlead::transport {

class Transports {
 public:
  struct Plan {
    link::LinkOptions link;
    std::size_t hot_peers = 0;            // that get a connected socket
    std::uint32_t datagram_size_max = 0;  // of peers that are met by their hello
    std::optional<link::SealSettings> sealing{};
  };

  Transports(std::unique_ptr<path::Path> path, const Plan& plan, std::uint64_t epoch, std::uint64_t seed,
             std::unique_ptr<shm::Transport> shm);

  const link::Link& link() const { return link_; }
  path::Path& path() { return *path_; }
  const path::Path& path() const { return *path_; }
  /// Null if peers of this host are reached as all others.
  shm::Transport* shm_transport() { return shm_.get(); }
  const shm::Transport* shm_transport() const { return shm_.get(); }
  FlightLog& flight() { return flight_; }
  const FlightLog& flight() const { return flight_; }
  Offences& offences() { return offences_; }
  const Offences& offences() const { return offences_; }
  std::uint64_t trains_not_taken() const { return trains_not_taken_; }

  /// Groups of hosts; null if the path has none.
  path::GroupSockets* groups() { return path_->groups(); }
  /// Whether something unsealed may be exchanged with that address: groups have no session that could be sealed.
  bool may_be_clear(const base::SocketAddress& address) const { return !base::contains(sealed_only_, address); }

  /// As Link::restore().
  Result<> restore(const link::LinkState& state, base::Instant now) { return link_.restore(state, now); }
  /// Of the last collect(): some have not been delivered yet.
  bool has_arrivals() const { return is_in_arrival_ || arrival_ != arrival_count_; }
  /// Nothing else is called afterwards.
  std::unique_ptr<path::Path> take_path() { return std::move(path_); }

  void set_keyring(std::shared_ptr<const seal::Keyring> ring) { link_.set_keyring(std::move(ring)); }

  // Messages, by either transport ------------------------------------------------------------------------------------

  /// The peer at an address, met now if need be: the shared-memory transport if it is there, else the link.
  Status resolve(const base::SocketAddress& address, base::Instant now, link::PeerHandle& peer) {
    const link::PeerHandle* const known = routes_.find(address);
    if (known == nullptr) [[unlikely]]
      return meet(address, now, peer);
    peer = *known;
    return Status::ok;
  }
  /// A peer of this host that was resolved lately; else null.
  const link::PeerHandle* find_local(const base::SocketAddress& address) const {
    const link::PeerHandle* const known = routes_.find(address);
    return known != nullptr && shm::Transport::has(*known) ? known : nullptr;
  }

  Status submit(link::PeerHandle peer, const link::Outgoing& message, base::Instant now,
                link::Reference* reference = nullptr) {
    return shm::Transport::has(peer) ? shm_->submit(peer, message, now, reference)
                                     : link_.submit(peer, message, now, reference);
  }
  /// As Link::cancel().
  bool cancel(link::PeerHandle peer, link::Reference reference, std::uint64_t cookie) {
    return shm::Transport::has(peer) ? shm_->cancel(peer, reference, cookie) : link_.cancel(peer, reference, cookie);
  }
  const base::SocketAddress& address(link::PeerHandle peer) const {
    return shm::Transport::has(peer) ? shm_->address(peer) : link_.address(peer);
  }
  void set_target(link::PeerHandle peer, std::uint32_t reassembly, std::uint64_t target) {
    shm::Transport::has(peer) ? shm_->set_target(peer, target) : link_.set_target(peer, reassembly, target);
  }
  /// Sends at once what was submitted to the peer, if little is in flight. What does not leave now leaves with the next
  /// pass. That pass comes: the acknowledgement of what is in flight wakes somebody.
  void send_eagerly(link::PeerHandle peer, base::Instant now) {
    if (!shm::Transport::has(peer) && link_.is_eager(peer)) emit(1, now);
  }

  /// Sends a peer of the network that owes something and has been silent for so long a message that asks for nothing:
  /// it acknowledges, or is found out. Nothing else would make the link look after a peer that nothing is in flight to.
  void ask(link::PeerHandle peer, base::Duration silent_for, base::Instant now);

  /// Ends the session, or the connection, with a peer that does what none should: its loss is noticed, and `why` stands
  /// in the flight log.
  void expel(link::PeerHandle peer, std::string_view why, base::Instant now);

  /// Whether there is an outcome, a notice, or a lost message of the shared-memory transport's own.
  /// A peer of the network is lost, and next_notice() has not told so yet.
  bool has_loss() const { return link_.has_loss(); }
  bool has_news() const { return (shm_ && shm_->has_news()) || link_.has_news(); }
  std::optional<link::Outcome> next_outcome() {
    auto outcome = shm_ ? shm_->next_outcome() : std::nullopt;
    return outcome ? outcome : link_.next_outcome();
  }
  /// Its session, or its connection, has begun or ended: the transports' own part of that is done.
  std::optional<link::Notice> next_notice(base::Instant now);

  /// Engines of this host, but of other users: they are met by what only the two ends of a session over the network
  /// know. After the shared-memory transport has been attended to.
  void vouch(base::Instant now);

  // The network ------------------------------------------------------------------------------------------------------

  /// While only peers of this host have something to say, the network is looked at now and then: a look is a system
  /// call.
  bool is_network_due(base::Instant now);
  /// Only peers of this host have something to say.
  bool is_network_idle() const {
    return shm_ != nullptr && network_looks_ >= kNetworkLooks && shm_->has_peers() &&
           link_.counters().messages_pending == 0;
  }
  /// Takes a bounded number of arrivals from the path, and hints that nobody listens. True if there was anything.
  /// Then next_delivery() until it has none.
  bool collect(base::Instant now);
  std::optional<link::Delivery> next_delivery(base::Instant now);
  /// The link's timers. True if they were due.
  bool expire(base::Instant now);
  /// What was sent is looked after (acknowledgements, losses, round trips) between passes, so one call sends a few full
  /// trains at most; the next one has to follow at once, says next_deadline().
  bool emit(std::size_t trains_max, base::Instant now);
  base::Instant next_deadline(base::Instant now) const;
  /// Tells all peers that this engine ends, and meets nobody any more; as Link::take_leave().
  std::size_t take_leave(base::Instant now);
  /// Acknowledges what has come, without the usual delay, and ends all sessions.
  void farewell(base::Duration ack_delay, base::Instant now);

  static constexpr std::size_t kTrainsInPass = 32;

 private:
  static constexpr std::size_t kArrivalsInPass = 16;
  static constexpr std::size_t kBytesInPass = 128U << 10;  // sent; then the pass looks what has come
  static constexpr std::uint32_t kNetworkLooks = 256;
  static constexpr base::Duration kTurnedAwayEvery = std::chrono::seconds(1);
  static constexpr base::Duration kNetworkLookEvery = std::chrono::microseconds(20);

  Status meet(const base::SocketAddress& address, base::Instant now, link::PeerHandle& peer);
  void take_hint(const path::Unreachable& hint, base::Instant now);
  void end_arrival(base::Instant now);
  void report_path(const base::SocketAddress& address);
  void report_turned_away(base::Instant now);
  void on_link_notice(const link::Notice& notice, base::Instant now);
  std::optional<link::PeerHandle> seek(const base::SocketAddress& address, base::Instant now);

  std::unique_ptr<path::Path> path_;
  link::Link link_;
  std::unique_ptr<shm::Transport> shm_;
  FlightLog flight_;
  HotPeers hot_peers_;
  Offences offences_;
  std::uint32_t datagram_size_max_;
  std::vector<base::AddressRange> sealed_only_;  // none without keys

  RouteCache routes_;
  std::array<path::Arrival, kArrivalsInPass> arrivals_;  // of this pass
  std::size_t arrival_ = 0, arrival_count_ = 0;          // the one being taken, or the next
  bool is_in_arrival_ = false;
  std::span<const std::byte> rest_;  // of it
  link::Train train_;
  bool is_emit_cut_short_ = false;   // there may be more to send at once
  std::uint32_t network_looks_ = 0;  // in vain since something came, up to kNetworkLooks
  base::Instant network_look_at_{};  // the next, while only the shared-memory transport is in use
  std::uint64_t trains_not_taken_ = 0;
  std::uint64_t turned_away_seen_ = 0;
  base::Instant turned_away_at_{};  // the next report of them
};

}  // namespace fairlead::transport
