#pragma once
// The buffer pool of one application of a net swarm, and the expected state of its buffers.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <fairlead/net.hpp>

#include "sim/net_shared.hpp"

namespace fairlead::sim {

class NetPool {
 public:
  /// `number` and `address` are the application's.
  NetPool(NetShared& shared, net::Domain& domain, std::uint32_t number, const std::string& address);

  /// Attaches the pool to a machine that is not started. `on_event` gets each event of its buffers.
  void attach(net::TransferMachine& machine, std::function<void(const net::BufferEvent&, bool is_first)> on_event);
  /// Gives back some of the buffers that the application holds, or changes how many the machine wants.
  void act(net::TransferMachine& machine);
  /// Checks that all buffers are back after the machine has stopped.
  void check_home();

 private:
  void on_event(const net::BufferEvent& event);
  void give_back(std::size_t index);
  void check_deficit(const net::TransferMachine& machine);

  NetShared& shared_;
  std::uint32_t number_;
  std::string address_;
  net::BufferPool pool_;
  net::Provision wishes_;
  std::function<void(const net::BufferEvent&, bool)> on_event_;
  std::map<net::Buffer*, NetFilling> filling_;  // buffers that have had an event
  std::vector<net::Buffer*> held_;
};

}  // namespace fairlead::sim
