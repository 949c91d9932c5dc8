#pragma once
// Selects an interface's engine: one in this process, or the host engine (docs/host.md).

#include <cstdint>
#include <memory>
#include <string>

#include <fairlead/error.hpp>

#include "engine/core.hpp"
#include "engine/engine_options.hpp"

namespace fairlead::host {

/// The purpose of the attachment. With FAIRLEAD_CORE=auto, queue pairs and active messages get an engine in the
/// process.
enum class Use : std::uint8_t { messages, queue_pairs, active_messages };

/// Returns the engine at `local` that the options select: from embedded::attach_embedded(), or the host engine. An
/// address of `lo()` always selects an engine in the process. Returns `not_supported` if the host engine lacks the
/// feature.
Result<std::shared_ptr<engine::Core>> attach(const base::SocketAddress& local, const engine::EngineOptions& options,
                                             Use use);

/// Attaches to the host engine that listens at `file`. Callers with the same file and address share the attachment
/// while it lives.
Result<std::shared_ptr<engine::Core>> attach_host(const std::string& file, const base::SocketAddress& local,
                                                  const engine::EngineOptions& options);

/// Returns the host engine's default socket: $XDG_RUNTIME_DIR/fairlead/host if it exists, else /run/fairlead/host.
std::string default_host_file();

}  // namespace fairlead::host
