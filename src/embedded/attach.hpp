#pragma once
// The engines of this process, by address.

#include <memory>

#include <fairlead/error.hpp>

#include "base/file_descriptor.hpp"
#include "base/socket_address.hpp"
#include "embedded/embedded_core.hpp"
#include "engine/engine_options.hpp"
#include "engine/engine_state.hpp"

namespace fairlead::embedded {

/// Returns the engine of this process at `local`. It is created on first use, shared by all users of the address, and
/// ends with the last of them. Port 0: the first free port of the options' range. The address lo() (0@lo) gives an
/// engine without a path. The child of a fork() gets engines of its own; one inherited from the parent may only be
/// released. Any thread may call. Errors name the socket, key file, log or shared memory that could not be opened.
Result<std::shared_ptr<EmbeddedCore>> attach_embedded(const base::SocketAddress& local,
                                                      const engine::EngineOptions& options);

/// Does the same, except that port 0 gives an engine that nobody else got by port 0.
Result<std::shared_ptr<EmbeddedCore>> attach_another(const base::SocketAddress& local,
                                                     const engine::EngineOptions& options);

/// Restores the engine of the previous program in this process, with its socket. The caller then gives all operations
/// their memory (EmbeddedCore::give_memory) and calls start(). `shares_any_port`: attach_embedded() returns it for
/// port 0.
Result<std::shared_ptr<EmbeddedCore>> restore_embedded(const engine::EngineState& state, base::FileDescriptor socket,
                                                       const engine::EngineOptions& options, bool shares_any_port);
/// Tests whether the state can be restored, with a temporary engine that reaches no peer.
Result<> try_to_restore(const engine::EngineState& state, const engine::EngineOptions& options);

}  // namespace fairlead::embedded
