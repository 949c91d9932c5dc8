#pragma once
// How peers were lost, until they are met again: for the sentences that tell people why.

#include <string>
#include <unordered_map>

#include "base/socket_address.hpp"
#include "base/time.hpp"
#include "link/link.hpp"
#include "transport/offences.hpp"

namespace fairlead::transport {

class LostPeers {
 public:
  explicit LostPeers(base::Duration give_up_after) : give_up_after_(give_up_after) {}

  /// Whether the peer left in order. Whoever did is not there either for those who look for him later, until he is met
  /// again: that ends the memory of it.
  bool add(const base::SocketAddress& peer, const link::Notice& notice, base::Instant now);
  /// We put it out.
  void blame(const base::SocketAddress& peer, Offence offence);
  void forget(const base::SocketAddress& peer) { losses_.erase(peer); }
  /// Empty if it is not lost.
  std::string describe(const base::SocketAddress& peer, base::Instant now) const;

 private:
  static constexpr std::size_t kMost = 256;

  struct Loss {
    link::Notice notice;
    base::Instant when;
    Offence offence = Offence::none;  // for which we ended it
    bool has_left = false;            // in order: it had said that it ends
  };

  std::string describe_diagnosis(const std::string& peer, const Loss& loss, double ago) const;

  base::Duration give_up_after_;
  std::unordered_map<base::SocketAddress, Loss, base::SocketAddressHash> losses_;
};

}  // namespace fairlead::transport
