#pragma once
// An engine that applications share.

#include <memory>

#include "engine/core.hpp"
#include "host/shares.hpp"

namespace fairlead::host {

struct ServedEngine {
  std::shared_ptr<engine::Core> core;
  Shares shares;  // of its operations
};

}  // namespace fairlead::host
