#pragma once
// The engines of this process, by address.

#include <memory>

#include <fairlead/error.hpp>

#include "engine/core.hpp"
#include "engine/engine_options.hpp"

namespace fairlead::embedded {

/// The engine of this process at `local`: made on first use, shared by all users of that address, gone with the last
/// one. Port 0: the first free one of the options' range. An address of `lo()` (0@lo) makes an engine without any path.
/// In the child of a fork() the parent's engines are none of ours: whoever attaches gets a new one. An inherited one
/// may be let go of, and nothing else.
Result<std::shared_ptr<engine::Core>> attach_embedded(const base::SocketAddress& local,
                                                      const engine::EngineOptions& options);

}  // namespace fairlead::embedded
