#pragma once
// What all applications of a net swarm share: the world, bytes under way, and how often each statement was checked.
//
// The statements are those of Motr's checklist (docs/motr.md lists them). Each check of one counts, so that a test sees
// that none was skipped.

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <fairlead/net.hpp>

#include "sim/findings.hpp"
#include "sim/net_world.hpp"
#include "sim/trace.hpp"

namespace fairlead::sim {

/// How often each statement was checked, by its number, 1 to 17.
using StatementCounts = std::array<std::uint64_t, 18>;

/// Memory that a machine has exposed. It may have ended by now.
struct NetOffer {
  net::BufferDescriptor descriptor;
  net::QueueKind kind = net::QueueKind::passive_bulk_receive;
  std::uint64_t operation = 0;
  std::uint64_t size = 0;
};

/// Bytes in transit between applications, by the number of the sending operation.
struct NetSending {
  std::uint32_t to = 0;  // message: the machine's number; put: the number of the offer's operation
  std::uint64_t size = 0;
  std::string sender;
  bool has_arrived = false;
  bool has_ended_well = false;
};
using NetSendings = std::map<std::uint64_t, NetSending>;

/// A receive buffer while messages arrive in it.
struct NetFilling {
  std::uint64_t end_of_last = 0;  // no later message begins before this offset
  std::uint32_t messages_left = 0;
  bool has_gap = false;  // of a message whose sender was lost; it counts as one of the messages, and has no event
};

struct NetShared {
  NetShared(NetWorld& its_world, Random& its_random, Random& its_extras, Findings& its_findings, Trace& its_trace)
      : world(its_world), random(its_random), extras(its_extras), findings(its_findings), trace(its_trace) {}

  /// Checks bytes that an event delivers against what was sent.
  void check_arrival(NetSendings& sendings, std::uint32_t to, const net::BufferEvent& event, const std::string& at);
  /// Checks a message's place in its buffer. The buffer ends when less than `size_min` bytes are left.
  void check_place(NetFilling& filling, const net::BufferEvent& event, std::uint64_t size_min, const std::string& at);

  NetWorld& world;
  Random& random;
  Random& extras;  // for what was added later, so that the rest of a seed's world does not change
  Findings& findings;
  Trace& trace;
  std::uint64_t operations = 0, succeeded = 0, restarts = 0;
  StatementCounts statements{};
  std::vector<NetOffer> offers;
  NetSendings messages, puts;
};

/// Counts a check of statement `number`, and adds a finding unless the condition holds.
#define SIM_STATEMENT(shared, number, condition, ...)                               \
  do {                                                                              \
    ++(shared).statements.at(number);                                               \
    SIM_CHECK((shared).findings, condition, "statement " #number ", " __VA_ARGS__); \
  } while (false)

}  // namespace fairlead::sim
