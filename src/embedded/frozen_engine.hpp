#pragma once
// Holds the lock of an engine of this process, so that its saved state stays valid. Other calls to the engine wait.

#include "embedded/driver.hpp"
#include "engine/handover.hpp"

namespace fairlead::embedded {

class FrozenEngine {
 public:
  explicit FrozenEngine(Driver& driver) : driver_(driver), lock_(driver) {}

  base::SocketAddress address() const { return driver_.engine().address(); }
  Result<engine::EngineState> save() { return engine::Handover(driver_.engine()).save(); }
  /// The socket that has the engine's port.
  int socket() const { return driver_.engine().path()->socket(); }

 private:
  Driver& driver_;
  const Driver::Locked lock_;
};

}  // namespace fairlead::embedded
