#pragma once
// DomainState is the object behind a Domain: the engine and the settings of requests.

#include <memory>

#include <fairlead/time.hpp>

#include "base/process_mark.hpp"
#include "base/time.hpp"
#include "engine/core.hpp"

namespace fairlead::am {

struct DomainState {
  /// Returns whether the parent opened it before a fork(). Then nothing may be touched, not even bundles' locks.
  bool is_inherited() const { return mark.is_inherited(); }

  const base::ProcessMark mark;
  std::shared_ptr<engine::Core> core;
  engine::ActivePorts* ports = nullptr;
  Duration request_timeout{};
  unsigned poll_max = 0;
};

}  // namespace fairlead::am
