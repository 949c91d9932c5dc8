#pragma once
// A host engine that stands still, and all that the next program in this process needs to go on with it. If that does
// not come, this one goes on: nothing has happened but a pause.

#include <cstddef>
#include <memory>
#include <vector>

#include "embedded/frozen_engine.hpp"
#include "host/service_state.hpp"

namespace fairlead::host {

struct Handover {
  std::vector<std::unique_ptr<embedded::FrozenEngine>> frozen;  // as long as this is there
  std::vector<std::byte> state;
  std::vector<int> descriptors;  // that have to stay open
};

}  // namespace fairlead::host
