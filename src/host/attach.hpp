#pragma once
// Which engine a face gets: one of this process, or the host's (docs/host.md).

#include <cstdint>
#include <memory>
#include <string>

#include <fairlead/error.hpp>

#include "engine/core.hpp"
#include "engine/engine_options.hpp"

namespace fairlead::host {

/// What a face does with it. The host engine serves messages, bulk transfers and queue pairs; active messages have
/// engines of the process.
enum class Use : std::uint8_t { messages, queue_pairs, active_messages };

/// The engine at `local`, as the options choose: embedded::attach_embedded(), or the host engine's. An address of
/// `lo()` is always of the process. not_supported: the host engine is asked for what it does not do.
Result<std::shared_ptr<engine::Core>> attach(const base::SocketAddress& local, const engine::EngineOptions& options,
                                             Use use);

/// The host engine's that listens at `file`. Those who name the same file and address share it, as long as it lives.
Result<std::shared_ptr<engine::Core>> attach_host(const std::string& file, const base::SocketAddress& local,
                                                  const engine::EngineOptions& options);

/// Where the host engine listens, if no file is named: $XDG_RUNTIME_DIR/fairlead/host if that is there, else
/// /run/fairlead/host.
std::string default_host_file();

}  // namespace fairlead::host
