#pragma once
// Opens shared memory with the engines of this host, according to an engine's options.

#include <cstdint>
#include <memory>

#include <fairlead/error.hpp>

#include "engine/engine_options.hpp"
#include "shm/transport.hpp"

namespace fairlead::embedded {

/// Returns null if local peers are reached over UDP: by the options, or because there is no shared memory, which is
/// logged. Injected faults concern datagrams, so with a fault plan all goes over UDP unless shared memory is forced.
/// Error: shared memory is forced, and there is none.
Result<std::unique_ptr<shm::Transport>> open_shm(const base::SocketAddress& own, std::uint64_t epoch,
                                                 const engine::EngineOptions& options);

}  // namespace fairlead::embedded
