#pragma once
// Calls that a started machine of a net swarm must refuse, and what addresses it gives.

#include <string>
#include <vector>

#include <fairlead/net.hpp>

#include "sim/net_shared.hpp"

namespace fairlead::sim {

class NetTrials {
 public:
  NetTrials(NetShared& shared, net::Domain& domain, std::string address)
      : shared_(shared), domain_(domain), address_(std::move(address)) {}

  /// A second machine cannot have the address of a started one; free addresses are given out from the highest.
  void try_addresses();
  /// A descriptor with one flipped bit. `buffer` is not queued.
  void try_damaged(net::TransferMachine& machine, net::Buffer& buffer, const NetOffer& offer);
  /// A deadline that has passed. `buffer` is not queued.
  void try_too_late(net::TransferMachine& machine, net::Buffer& buffer);
  /// Closes a stopped machine, once with an end point of the application's, which is in the way.
  void close(net::TransferMachine& machine, net::EndPoint kept);

 private:
  NetShared& shared_;
  net::Domain& domain_;
  std::string address_;
};

}  // namespace fairlead::sim
