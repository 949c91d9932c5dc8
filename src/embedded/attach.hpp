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

/// The engine of this process at `local`: made on first use, shared by all users of that address, gone with the last
/// one. Port 0: the first free one of the options' range. An address of `lo()` (0@lo) makes an engine without any path.
/// In the child of a fork() the parent's engines are none of ours: whoever attaches gets a new one. An inherited one
/// may be let go of, and nothing else.
Result<std::shared_ptr<EmbeddedCore>> attach_embedded(const base::SocketAddress& local,
                                                      const engine::EngineOptions& options);

/// The engine of the program before this one in this process, with its socket. All its operations want their memory
/// (EmbeddedCore::give_memory); then it is to be started.
Result<std::shared_ptr<EmbeddedCore>> restore_embedded(const engine::EngineState& state, base::FileDescriptor socket,
                                                       const engine::EngineOptions& options);
/// Whether it could be: tried with an engine that reaches nobody, and ends.
Result<> try_to_restore(const engine::EngineState& state, const engine::EngineOptions& options);

}  // namespace fairlead::embedded
