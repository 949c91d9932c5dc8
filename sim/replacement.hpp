#pragma once
// Replaces an engine as a host engine does when its program is replaced. Its state is saved to bytes, the old engine is
// destroyed, and a new one is made in its place.

#include <functional>
#include <optional>

#include "base/time.hpp"
#include "engine/engine.hpp"
#include "sim/sabotage.hpp"

namespace fairlead::sim {

enum class Replaced : std::uint8_t { done, later, never };

/// Returns `later` if something is in transit or an event waits. Returns `never` if the engine has state that cannot be
/// handed over. `sealing`: of the new engine. `give` gives its queue pairs what they need.
Replaced replace(engine::Engine& engine, Sabotage& sabotage, base::Instant now,
                 std::optional<link::SealSettings> sealing = std::nullopt,
                 const std::function<void(engine::Engine&)>& give = {});

}  // namespace fairlead::sim
