#pragma once
// Remembers how peers were lost, until they are met again, for error messages.

#include <string>
#include <unordered_map>

#include "base/socket_address.hpp"
#include "base/time.hpp"
#include "link/link.hpp"
#include "transport/offences.hpp"
#include "transport/peer_facts.hpp"

namespace fairlead::transport {

class LostPeers {
 public:
  explicit LostPeers(base::Duration give_up_after) : give_up_after_(give_up_after) {}

  /// Records a loss. Returns whether the peer left in order. Such a peer counts as absent, also for later look-ups,
  /// until it is met again.
  /// `reason`: why shared memory does not reach the peer, if known.
  bool add(const base::SocketAddress& peer, const link::Notice& notice, base::Instant now, std::string reason = {});
  /// Records that this side expelled the peer.
  void blame(const base::SocketAddress& peer, Offence offence);
  void forget(const base::SocketAddress& peer) { losses_.erase(peer); }
  /// Returns why the peer was lost; empty if it is not lost.
  std::string describe(const base::SocketAddress& peer, base::Instant now) const;
  PeerProblem problem(const base::SocketAddress& peer) const;

 private:
  static constexpr std::size_t kMost = 256;

  struct Loss {
    link::Notice notice;
    base::Instant when;
    Offence offence = Offence::none;  // for which this side ended it
    bool has_left = false;            // in order: it had announced its end
    std::string reason;               // of shared memory
  };

  std::string describe_diagnosis(const std::string& peer, const Loss& loss, double ago) const;

  base::Duration give_up_after_;
  std::unordered_map<base::SocketAddress, Loss, base::SocketAddressHash> losses_;
};

}  // namespace fairlead::transport
