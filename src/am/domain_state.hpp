#pragma once
// A domain behind its face: the engine, and the settings of requests.

#include <memory>

#include <fairlead/time.hpp>

#include "base/time.hpp"
#include "engine/core.hpp"

namespace fairlead::am {

struct DomainState {
  std::shared_ptr<engine::Core> core;
  engine::ActivePorts* ports = nullptr;
  Duration request_timeout{};
  unsigned poll_max = 0;
};

}  // namespace fairlead::am
