#pragma once
// A domain behind its face: the engine, and the settings of requests.

#include <memory>

#include <fairlead/time.hpp>

#include "base/process_mark.hpp"
#include "base/time.hpp"
#include "engine/core.hpp"

namespace fairlead::am {

struct DomainState {
  /// Whether it was opened by the process that forked this one: then nothing is touched, locks of bundles neither.
  bool is_inherited() const { return mark.is_inherited(); }

  const base::ProcessMark mark;
  std::shared_ptr<engine::Core> core;
  engine::ActivePorts* ports = nullptr;
  Duration request_timeout{};
  unsigned poll_max = 0;
};

}  // namespace fairlead::am
