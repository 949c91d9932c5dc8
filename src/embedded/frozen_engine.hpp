#pragma once
// An engine of this process that stands still as long as this lives: what it has saved stays true. Whoever calls it
// meanwhile waits.

#include "embedded/driver.hpp"
#include "engine/handover.hpp"

namespace fairlead::embedded {

class FrozenEngine {
 public:
  explicit FrozenEngine(Driver& driver) : driver_(driver), lock_(driver) {}

  base::SocketAddress address() const { return driver_.engine().address(); }
  Result<engine::EngineState> save() { return engine::Handover(driver_.engine()).save(); }
  /// The one that has its port.
  int socket() const { return driver_.engine().path()->socket(); }

 private:
  Driver& driver_;
  const Driver::Locked lock_;
};

}  // namespace fairlead::embedded
