#include "host/attach.hpp"

#include <unistd.h>

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "base/environment.hpp"
#include "base/log.hpp"
#include "base/process_mark.hpp"
#include "embedded/attach.hpp"
#include "host/host_core.hpp"

namespace fairlead::host {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::pair<std::string, base::SocketAddress>, std::weak_ptr<HostCore>> cores;
};

// The child of a fork uses no attachment of its parent; it attaches again.
constinit base::OfProcess<Registry> registry;

Result<std::shared_ptr<HostCore>> attach_host_core(const std::string& file, const base::SocketAddress& local,
                                                   const engine::EngineOptions& options) {
  Registry& all = *registry;
  const std::scoped_lock lock(all.mutex);
  std::erase_if(all.cores, [](const auto& entry) {
    const auto core = entry.second.lock();
    return !core || core->look_for_end();
  });
  if (const auto found = all.cores.find({file, local}); found != all.cores.end())
    if (auto core = found->second.lock()) return core;
  auto core = HostCore::attach(file, local, options);
  if (!core) return std::unexpected(std::move(core.error()));
  all.cores[{file, local}] = *core;
  all.cores[{file, (*core)->address()}] = *core;
  return *core;
}

/// Attaches, and opens queue pairs if the interface needs them.
Result<std::shared_ptr<engine::Core>> attach_host_for(Use use, const std::string& file,
                                                      const base::SocketAddress& local,
                                                      const engine::EngineOptions& options) {
  auto core = attach_host_core(file, local, options);
  if (!core) return std::unexpected(std::move(core.error()));
  if (use == Use::queue_pairs)
    if (auto opened = (*core)->open_pairs(); !opened) return std::unexpected(std::move(opened.error()));
  return *core;
}

}  // namespace

Result<std::shared_ptr<engine::Core>> attach_host(const std::string& file, const base::SocketAddress& local,
                                                  const engine::EngineOptions& options) {
  return attach_host_for(Use::messages, file, local, options);
}

std::string default_host_file() {
  if (const char* directory = base::environment("XDG_RUNTIME_DIR"); directory != nullptr) {
    std::string file = fmt::format("{}/fairlead/host", directory);
    if (::access(file.c_str(), F_OK) == 0) return file;
  }
  return "/run/fairlead/host";
}

Result<std::shared_ptr<engine::Core>> attach(const base::SocketAddress& local, const engine::EngineOptions& options,
                                             Use use) {
  const bool is_lo = local.ip == base::SocketAddress{}.ip;
  const engine::CoreChoice choice = options.core();
  if (choice == engine::CoreChoice::embedded || is_lo) return embedded::attach_embedded(local, options);
  // The host engine cannot serve every program that has queue pairs or active messages: one with threads could not
  // register memory, and the whole address space cannot be a segment. The user did not request the host engine.
  if (use != Use::messages && choice == engine::CoreChoice::automatic) return embedded::attach_embedded(local, options);
  const std::string file = options.host().empty() ? default_host_file() : options.host();
  auto core = attach_host_for(use, file, local, options);
  if (core || choice == engine::CoreChoice::host) return core;
  base::log(LogLevel::info, LogTopic::engine, local.to_string(),
            fmt::format("uses an engine in this process, because the host engine is not available: {}",
                        core.error().message));
  return embedded::attach_embedded(local, options);
}

}  // namespace fairlead::host
