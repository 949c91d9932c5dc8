#pragma once
// Keys of exposures in advance, for the host engine (engine/exposures.hpp). Core::cancel() ends a blank, without an
// event.

#include "embedded/driver.hpp"

namespace fairlead::embedded {

class EmbeddedKeys {
 public:
  explicit EmbeddedKeys(Driver& driver) : driver_(driver) {}

  Status add(engine::PortHandle port, engine::OperationHandle& blank, std::uint64_t& key) {
    const Driver::Locked lock(driver_);
    return exposures().add_blank(port, blank, key);
  }
  bool has(engine::PortHandle port, engine::OperationHandle blank) {
    const Driver::Locked lock(driver_);
    return exposures().has_blank(port, blank);
  }
  Status fill(engine::PortHandle port, engine::OperationHandle blank, const engine::Exposure& exposure) {
    const Driver::Locked lock(driver_);
    return exposures().fill_blank(port, blank, exposure);
  }

 private:
  engine::Exposures& exposures() { return driver_.engine().messages().exposures(); }

  Driver& driver_;
};

}  // namespace fairlead::embedded
