#pragma once
// An application's request to send an active message, in the form that both sides use.

#include <cstdint>
#include <span>

#include <sys/uio.h>

#include "engine/active.hpp"
#include "host/layout.hpp"

namespace fairlead::host {

/// Leaves the operation, its memory and the port to the caller.
Request to_request(const engine::ActiveMessage& message);
/// Any request gives a message.
engine::ActiveMessage to_message(const Request& request, std::span<const iovec> memory, std::uint64_t cookie);

/// The rule in a request of kind set_access.
Request to_request(const engine::AccessRule& rule);
engine::AccessRule to_rule(const Request& request);

}  // namespace fairlead::host
