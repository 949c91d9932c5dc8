#pragma once
// A machine's place in an engine, from started to stopped: the port, the own end point, and those of others.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fairlead/error.hpp>
#include <fairlead/net/end_point.hpp>
#include <fairlead/net/statistics.hpp>

#include "engine/core.hpp"
#include "net/domain_state.hpp"
#include "net/end_point_table.hpp"
#include "net/net_address.hpp"

namespace fairlead::net {

/// Under the machine's lock, except where stated.
struct MachinePort {
  /// What a start has got, and nobody else sees yet.
  struct Opened {
    std::shared_ptr<engine::Core> core;
    engine::PortHandle handle;
    NetAddress address;
    std::string ignored;  // settings of the domain that the engine does not follow, in one line
  };
  /// Everything that makes a start fail. Without the lock: it may take a while.
  static Result<Opened> open(DomainState& domain, const NetAddress& wanted);

  MachinePort();

  void settle(Opened opened);
  /// As TransferMachine::create_end_point() of a started machine.
  Result<EndPoint> create_end_point(std::string_view text);
  std::string describe(const EndPoint& end_point) const;
  std::string describe_flight(const EndPoint& end_point) const;
  /// Messages that found no buffer.
  std::uint64_t dropped() const { return core ? core->dropped_no_buffer(handle) : dropped_at_end; }
  std::uint64_t message_size_max() const { return core ? core->message_size_max() : 0; }

  std::shared_ptr<engine::Core> core;
  engine::PortHandle handle;
  std::uint64_t dropped_at_end = 0;
  EndPoint own;
  EndPointTable end_points;
};

}  // namespace fairlead::net
