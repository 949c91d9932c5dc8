#pragma once
// The link and the shared-memory transport behind one interface, with the path below the link: everything that moves
// messages between engines. The peer's handle selects the transport of a message. Results look the same from either
// transport.
//
// Messages have no order among each other, so a peer may be reached both ways at a time: a message ends on the
// transport where it began.

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
    std::size_t hot_peers = 0;            // peers that get a connected socket
    std::uint32_t datagram_size_max = 0;  // initial limit for peers that are met by their hello
    std::optional<link::SealSettings> sealing{};
    bool is_udp_chosen = false;  // by the setting `path`
  };

  Transports(std::unique_ptr<path::Path> path, const Plan& plan, std::uint64_t epoch, std::uint64_t seed,
             std::unique_ptr<shm::Transport> shm);

  const link::Link& link() const { return link_; }
  path::Path& path() { return *path_; }
  const path::Path& path() const { return *path_; }
  /// Null if there is no shared memory, so that peers of this host are reached like all others.
  shm::Transport* shm_transport() { return shm_.get(); }
  const shm::Transport* shm_transport() const { return shm_.get(); }
  /// Returns why a peer of this host is not reached through shared memory. Empty if that was not tried.
  std::string why_not_shared(const base::SocketAddress& address) const;
  FlightLog& flight() { return flight_; }
  const FlightLog& flight() const { return flight_; }
  Offences& offences() { return offences_; }
  const Offences& offences() const { return offences_; }
  std::uint64_t trains_not_taken() const { return trains_not_taken_; }

  /// Multicast groups; null if the path has none.
  path::GroupSockets* groups() { return path_->groups(); }
  /// Returns whether unsealed data may be exchanged with that address: groups have no session that could be sealed.
  bool may_be_clear(const base::SocketAddress& address) const { return !base::contains(sealed_only_, address); }

  /// As Link::restore().
  Result<> restore(const link::LinkState& state, base::Instant now) { return link_.restore(state, now); }
  /// Returns whether arrivals of the last collect() have not been delivered yet.
  bool has_arrivals() const { return is_in_arrival_ || arrival_ != arrival_count_; }
  /// Takes the path out; nothing else may be called afterwards.
  std::unique_ptr<path::Path> take_path() { return std::move(path_); }

  void set_keyring(std::shared_ptr<const seal::Keyring> ring) { link_.set_keyring(std::move(ring)); }

  // Messages, by either transport ------------------------------------------------------------------------------------

  /// Finds the peer at an address, or meets it now: over shared memory if possible, otherwise over the link.
  Status resolve(const base::SocketAddress& address, base::Instant now, link::PeerHandle& peer) {
    const link::PeerHandle* const known = routes_.find(address);
    if (known == nullptr) [[unlikely]]
      return meet(address, now, peer);
    peer = *known;
    return Status::ok;
  }
  /// Does the same for messages that must not overtake earlier ones. Returns `again` while this side parts from the
  /// peer (shm/partings.hpp).
  Status resolve_ordered(const base::SocketAddress& address, base::Instant now, link::PeerHandle& peer) {
    const link::PeerHandle* const known = routes_.find(address);
    if (known == nullptr) [[unlikely]]
      return shm_ && shm_->partings().has(address) ? Status::again : meet(address, now, peer);
    peer = *known;
    return Status::ok;
  }
  /// Returns a peer that was resolved recently, otherwise null.
  const link::PeerHandle* find(const base::SocketAddress& address) const { return routes_.find(address); }

  Status submit(link::PeerHandle peer, const link::Outgoing& message, base::Instant now,
                link::Reference* reference = nullptr) {
    return shm::Transport::has(peer) ? shm_->submit(peer, message, now, reference)
                                     : link_.submit(peer, message, now, reference);
  }
  /// Sends short messages to one port, as Link::send_short(). Returns how many were accepted; the caller passes the
  /// others to submit(). In short_sends.hpp.
  inline std::size_t send_short(link::PeerHandle peer, const link::ShortSend& send, base::Instant now,
                                std::span<link::OperationHandle> names);
  /// As Link::end_early().
  std::optional<link::Outcome> end_early(std::uint32_t owner, const link::OperationHandle& name) {
    return (name.slot & link::kShortOfLink) != 0 || !shm_ ? link_.end_early(owner, name) : shm_->end_early(owner, name);
  }
  /// As Link::end_any_early(), for the network only: peers of this host have got their messages already.
  std::optional<link::Outcome> end_any_early(std::uint32_t owner, std::uint32_t& first) {
    return link_.end_any_early(owner, first);
  }
  /// As Link::mark_refused(); false for peers of this host, which Transport::end_line() serves.
  bool mark_refused(link::PeerHandle peer, const link::OperationHandle& name, Status status) {
    return !shm::Transport::has(peer) && link_.mark_refused(peer, name, status);
  }
  std::uint64_t count_pending(std::uint32_t owner) {
    return link_.count_pending(owner) + (shm_ ? shm_->count_pending(owner) : 0);
  }
  /// As Link::cancel().
  bool cancel(link::PeerHandle peer, link::Reference reference, std::uint64_t cookie) {
    return shm::Transport::has(peer) ? shm_->cancel(peer, reference, cookie) : link_.cancel(peer, reference, cookie);
  }
  /// As Link::recall(); false for peers of this host, whose messages do not wait.
  bool recall(link::PeerHandle peer, link::Reference reference, std::uint64_t cookie) {
    return !shm::Transport::has(peer) && link_.recall(peer, reference, cookie);
  }
  const base::SocketAddress& address(link::PeerHandle peer) const {
    return shm::Transport::has(peer) ? shm_->address(peer) : link_.address(peer);
  }
  void set_target(link::PeerHandle peer, std::uint32_t reassembly, std::uint64_t target) {
    shm::Transport::has(peer) ? shm_->set_target(peer, target) : link_.set_target(peer, reassembly, target);
  }
  /// Returns whether a long message to this network peer would wait for no other.
  bool sends_at_once(link::PeerHandle peer) const { return !shm::Transport::has(peer) && link_.is_idle(peer); }
  /// Sends at once what was submitted to the peer, if little is in flight. The rest leaves with the next pass, which
  /// the acknowledgement of what is in flight will cause.
  void send_eagerly(link::PeerHandle peer, base::Instant now) {
    if (!shm::Transport::has(peer) && link_.is_eager(peer)) emit(1, now);
  }

  /// Probes a network peer that owes something and has been silent for this long: sends a message that asks for
  /// nothing, so that the peer acknowledges or is found lost. Otherwise the link does not check a peer without data in
  /// flight.
  void ask(link::PeerHandle peer, base::Duration silent_for, base::Instant now);

  /// Ends the session or connection with a peer that breaks the protocol. Its loss is reported, and the flight log has
  /// `why`. Returns its address; nullopt if the peer is gone already.
  std::optional<base::SocketAddress> expel(link::PeerHandle peer, std::string_view why, base::Instant now);

  /// Returns whether a network peer is lost and next_notice() has not reported it yet.
  bool has_loss() const { return link_.has_loss(); }
  /// Returns whether there is an outcome, a notice, or a lost message of the shared-memory transport.
  bool has_news() const { return (shm_ && shm_->has_news()) || link_.has_news(); }
  std::optional<link::Outcome> next_outcome() {
    auto outcome = shm_ ? shm_->next_outcome() : std::nullopt;
    return outcome ? outcome : link_.next_outcome();
  }
  /// Returns the next notice: a session or connection has begun or ended. The transports' own part of that is done.
  std::optional<link::Notice> next_notice(base::Instant now);

  /// Parts from the peers of this host, or admits them again and meets those from which it has parted.
  void part_from_local_peers(bool is_parting, base::Instant now);
  /// Meets peers of this host from which the previous program of this process has parted.
  void meet_again(std::span<const base::SocketAddress> peers, base::Instant now);

  /// Lets engines of other users on this host meet over shared memory, by a key that only the two ends of a network
  /// session know. Call after the shared-memory transport was served.
  void vouch(base::Instant now);

  // The network ------------------------------------------------------------------------------------------------------

  /// Returns whether to poll the network now. While only peers of this host have messages it is polled rarely, since a
  /// poll is a system call.
  bool is_network_due(base::Instant now);
  /// Returns whether only peers of this host have messages.
  bool is_network_idle() const {
    return shm_ != nullptr && network_looks_ >= kNetworkLooks && shm_->has_peers() &&
           link_.counters().messages_pending == 0;
  }
  /// Takes a bounded number of arrivals, and errors, from the path. Returns true if there were any. Call
  /// next_delivery() until it returns nothing.
  bool collect(base::Instant now);
  std::optional<link::Delivery> next_delivery(base::Instant now);
  /// Runs the link's timers; returns true if they were due.
  bool expire(base::Instant now);
  /// Sends up to `trains_max` trains, but few full ones per call: between calls the engine handles acknowledgements,
  /// losses and round trips. If more could be sent, next_deadline() is now.
  bool emit(std::size_t trains_max, base::Instant now);
  base::Instant next_deadline(base::Instant now) const;
  /// Tells all peers that this engine ends, and meets no more peers; as Link::take_leave().
  std::size_t take_leave(base::Instant now);
  /// Acknowledges what has arrived, without the usual delay, and ends all sessions.
  void farewell(base::Duration ack_delay, base::Instant now);

  static constexpr std::size_t kTrainsInPass = 32;

 private:
  static constexpr std::size_t kArrivalsInPass = 16;
  static constexpr std::size_t kBytesInPass = 128U << 10;  // bytes sent; then the pass polls for arrivals
  static constexpr std::uint32_t kNetworkLooks = 256;
  static constexpr base::Duration kTurnedAwayEvery = std::chrono::seconds(1);
  static constexpr std::uint32_t kHostLooks = 64;  // most in kHostLooksFor
  static constexpr base::Duration kHostLooksFor = std::chrono::seconds(1);
  static constexpr base::Duration kNetworkLookEvery = std::chrono::microseconds(20);

  std::size_t send_far(link::PeerHandle peer, const link::ShortSend& send, base::Instant now,
                       std::span<link::OperationHandle> names);
  Status meet(const base::SocketAddress& address, base::Instant now, link::PeerHandle& peer);
  void look_for_host(link::Notice& notice, base::Instant now);
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
  std::vector<base::AddressRange> sealed_only_;  // empty without keys
  bool is_udp_chosen_;

  RouteCache routes_;
  std::array<path::Arrival, kArrivalsInPass> arrivals_;  // of this pass
  std::size_t arrival_ = 0, arrival_count_ = 0;          // the arrival being delivered, or the next one
  bool is_in_arrival_ = false;
  std::span<const std::byte> rest_;  // undelivered part of that arrival
  link::Train train_;
  bool is_emit_cut_short_ = false;   // there may be more to send at once
  std::uint32_t network_looks_ = 0;  // polls in vain since the last arrival, up to kNetworkLooks
  base::Instant network_look_at_{};  // time of the next poll, while only the shared-memory transport is in use
  std::uint32_t host_looks_ = 0;     // before host_looks_end_
  base::Instant host_looks_end_{};
  std::uint64_t trains_not_taken_ = 0;
  std::uint64_t turned_away_seen_ = 0;
  base::Instant turned_away_at_{};  // time of the next report of refused hellos
};

}  // namespace fairlead::transport
