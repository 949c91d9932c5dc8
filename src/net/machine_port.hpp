#pragma once
// A machine's place in an engine while it is started: the port, its own end point, and those of its peers.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fairlead/error.hpp>
#include <fairlead/net/end_point.hpp>
#include <fairlead/net/peer_facts.hpp>
#include <fairlead/net/statistics.hpp>

#include "engine/core.hpp"
#include "net/domain_state.hpp"
#include "net/end_point_table.hpp"
#include "net/net_address.hpp"

namespace fairlead::net {

/// The caller holds the machine's lock, except where stated.
struct MachinePort {
  /// The result of a successful open(), still private to the starting thread.
  struct Opened {
    std::shared_ptr<engine::Core> core;
    engine::PortHandle handle;
    NetAddress address;
    std::string ignored;  // the domain's settings that the engine does not follow, in one line
  };
  /// Attaches to the engine and opens the port: every step of a start that can fail. May block; call without the lock.
  static Result<Opened> open(DomainState& domain, const NetAddress& wanted);

  MachinePort();

  void settle(Opened opened);
  /// Implements TransferMachine::create_end_point() for a started machine.
  Result<EndPoint> create_end_point(std::string_view text);
  std::string describe(const EndPoint& end_point) const;
  std::string describe(const EndPoint& end_point, Status status) const;
  PeerFacts peer_facts(const EndPoint& end_point, Status status) const;
  std::string describe_flight(const EndPoint& end_point) const;
  /// Returns the count of messages that found no receive buffer.
  std::uint64_t dropped() const { return core ? core->dropped_no_buffer(handle) : dropped_at_end; }
  std::uint64_t message_size_max() const { return core ? core->message_size_max() : 0; }

  std::shared_ptr<engine::Core> core;
  engine::PortHandle handle;
  std::uint64_t dropped_at_end = 0;
  EndPoint own;
  EndPointTable end_points;
};

}  // namespace fairlead::net
