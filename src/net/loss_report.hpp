#pragma once
// Turns the peers that the engine has lost into events of the machine, if the machine knows them. The engine ends a
// wait at each loss.

#include <cstdint>

#include "engine/core.hpp"

namespace fairlead::net {

class LossReport {
 public:
  /// Reports losses from now on.
  void begin(engine::Core& core, engine::PortHandle port) {
    losses_ = core.active_ports();
    if (losses_ == nullptr) return;
    seen_ = losses_->losses();
    core.watch_losses(port);
  }
  bool has_more() const { return losses_ != nullptr && losses_->losses() != seen_; }
  bool next(engine::PeerLoss& loss) { return has_more() && losses_->next_loss(seen_, loss); }
  void end() { losses_ = nullptr; }

 private:
  engine::ActivePorts* losses_ = nullptr;  // owned by the engine; null: the engine reports no losses
  std::uint64_t seen_ = 0;
};

}  // namespace fairlead::net
