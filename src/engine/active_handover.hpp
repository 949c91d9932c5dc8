#pragma once
// The part of a handover for active messages (handover.hpp).

#include <cstdint>
#include <vector>

#include "engine/active_messages.hpp"
#include "engine/active_state.hpp"

namespace fairlead::engine {

/// Copies an arrival whose bytes have all come, except those of a segment.
ArrivalState state_of(const Arrival& arrival);

class ActiveHandover {
 public:
  explicit ActiveHandover(ActiveMessages& active) : active_(active) {}

  /// Contains no arrivals that are complete: their owners take and save them before.
  ActiveState save();
  /// Restores into a client that has ports, of which none is active. The owners then supply segments and arrivals.
  Result<> restore(const ActiveState& saved, std::uint32_t peers_max, base::Instant now);
  /// Returns whether a message of that size arrives in chunks under that name. Each name is true once.
  bool is_arrival(std::uint64_t target, std::uint64_t size);
  /// Returns false if the port is not active.
  bool give_segment(PortHandle port, const Segment& segment);
  /// Queues an arrival that its owner had not taken. Returns false if it contradicts itself or does not fit.
  bool give_arrival(PortHandle port, const ArrivalState& saved);

 private:
  bool restore(const ActivePortState& saved);
  bool restore(const FillingState& saved);
  ActivePort* find(PortHandle port);

  ActiveMessages& active_;
  std::vector<bool> arriving_;  // by slot of a filling: is_arrival() was true
};

}  // namespace fairlead::engine
