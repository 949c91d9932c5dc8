#pragma once
// An engine that applications share.

#include <memory>

#include "embedded/embedded_core.hpp"
#include "host/shares.hpp"

namespace fairlead::host {

struct ServedEngine {
  std::shared_ptr<embedded::EmbeddedCore> core;
  Shares shares;  // of its operations
};

}  // namespace fairlead::host
