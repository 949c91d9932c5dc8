#pragma once
// Delays, from what was measured of a peer. Repair without an ACK: a tail probe repeats the newest segment after 2
// round trips (more if they vary much) plus the peer's ACK delay. Its ACK shows everything that is missing. Then, at
// timeouts that double, only the oldest and the newest segments are repeated: the others may have arrived, and the ACK
// will tell.

#include <algorithm>
#include <cstdint>

#include "base/time.hpp"
#include "link/link_options.hpp"
#include "link/peer.hpp"

namespace fairlead::link {

class Timeouts {
 public:
  /// Least number of attempts before a peer is given up, however much time has passed: a host that was suspended must
  /// not give its peers up when it wakes.
  static constexpr std::uint32_t kAttemptsLeast = 3;

  explicit Timeouts(const LinkOptions& options) : options_(options) {}

  /// Time within which an answer to what was just sent should arrive.
  base::Duration answer_after(const Peer& peer) const;
  /// The retransmission timeout in force; it doubles each time it expires.
  base::Duration resend_after(const Peer& peer) const;
  /// Time until the newest segment is sent again.
  base::Duration probe_after(const Peer& peer) const;
  /// Time until a sender that is held back asks for a grant again.
  base::Duration ask_again_after(const Peer& peer) const;
  /// Time until a handshake message is repeated that was sent `times` times before.
  base::Duration said_after(std::uint32_t times) const;
  base::Duration hello_after(const Peer& peer) const { return said_after(std::max(peer.hellos, 1U) - 1); }
  /// When the next action for this peer is due; kNever if none is.
  base::Instant due(const Peer& peer) const;

 private:
  const LinkOptions& options_;
};

}  // namespace fairlead::link
