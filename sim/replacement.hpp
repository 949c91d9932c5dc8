#pragma once
// An engine goes on in a new body, as the host engine does when its program is replaced: what it saves goes through
// bytes, the old one is destroyed where it is, and another one made in its place.

#include "base/time.hpp"
#include "engine/engine.hpp"
#include "sim/sabotage.hpp"

namespace fairlead::sim {

enum class Replaced : std::uint8_t { done, later, never };

/// later: something is on its way, or an event waits. never: it has what cannot be handed over.
Replaced replace(engine::Engine& engine, Sabotage& sabotage, base::Instant now);

}  // namespace fairlead::sim
