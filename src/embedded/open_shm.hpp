#pragma once
// Shared memory with the engines of this host, by an engine's options.

#include <cstdint>
#include <memory>

#include <fairlead/error.hpp>

#include "engine/engine_options.hpp"
#include "shm/transport.hpp"

namespace fairlead::embedded {

/// Null if peers of this host are reached over UDP: by the options, or because there is no shared memory to be had,
/// which is told. Faults are made to datagrams: with a plan for them all goes over UDP, unless shared memory is forced.
Result<std::unique_ptr<shm::Transport>> open_shm(const base::SocketAddress& own, std::uint64_t epoch,
                                                 const engine::EngineOptions& options);

}  // namespace fairlead::embedded
