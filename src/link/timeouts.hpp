#pragma once
// After how long what is done again, by what was measured of a peer. Repair without news: after 2 round trips (more if
// they vary much) and the peer's ACK delay the newest segment is sent again (tail probe), for its ACK shows everything
// that is missing. Then, at timeouts that double, the oldest and the newest only: the rest may have arrived, and the
// answer will tell.

#include <algorithm>
#include <cstdint>

#include "base/time.hpp"
#include "link/link_options.hpp"
#include "link/peer.hpp"

namespace fairlead::link {

class Timeouts {
 public:
  /// Before a peer is given up, whatever the time: a host that slept through it must not give up on waking.
  static constexpr std::uint32_t kAttemptsLeast = 3;

  explicit Timeouts(const LinkOptions& options) : options_(options) {}

  /// An answer to what was just sent has come by then.
  base::Duration answer_after(const Peer& peer) const;
  /// The timeout in force, doubled by each that passed in vain.
  base::Duration resend_after(const Peer& peer) const;
  /// The newest segment goes again.
  base::Duration probe_after(const Peer& peer) const;
  /// Whoever is held back asks for a grant again.
  base::Duration ask_again_after(const Peer& peer) const;
  /// Before a word of a greeting is said again that was said so many times before.
  base::Duration said_after(std::uint32_t times) const;
  base::Duration hello_after(const Peer& peer) const { return said_after(std::max(peer.hellos, 1U) - 1); }
  /// When something of this peer is due next; kNever if nothing is.
  base::Instant due(const Peer& peer) const;

 private:
  const LinkOptions& options_;
};

}  // namespace fairlead::link
