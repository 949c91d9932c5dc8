#pragma once
// The answer to the call next_loss: a peer that the engine has lost.

#include <cstdint>
#include <optional>

#include "engine/active.hpp"
#include "host/call.hpp"

namespace fairlead::host {

/// Returns the answer to a reader that has seen the first `seen` losses. A reader that has seen more of an earlier
/// program's begins anew.
Answer answer_loss(engine::ActivePorts& ports, std::uint64_t seen);
/// Returns nullopt if there was none. Sets `seen` to what the next call shall name.
std::optional<engine::PeerLoss> loss_from(const Answer& answer, std::uint64_t& seen);

}  // namespace fairlead::host
