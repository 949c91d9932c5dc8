#include "embedded/open_shm.hpp"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "base/log.hpp"
#include "onesided/shared_tables.hpp"

namespace fairlead::embedded {

Result<std::unique_ptr<shm::Transport>> open_shm(const base::SocketAddress& own, std::uint64_t epoch,
                                                 const engine::EngineOptions& options) {
  const bool is_forced = options.path() == engine::PathChoice::shm;
  if (options.path() == engine::PathChoice::udp || (options.fault().has_faults() && !is_forced)) return nullptr;
  const std::uint64_t shared = options.get(engine::Option::shm_shared_max) & ~std::uint64_t{4095};
  const bool has_cma =
      options.get(engine::Option::shm_cma_max) != 0 || options.get(engine::Option::shm_cma_awake_max) != 0;
  auto connections = shm::Connections::open(
      own, epoch,
      {.directory = options.shm_directory(),
       .admits_all = options.admits_all_users(),
       .ring_bytes = static_cast<std::uint32_t>(options.get(engine::Option::shm_ring)),
       .peers_max = static_cast<std::uint32_t>(options.get(engine::Option::shm_peers_max)),
       .arena_bytes = shared == 0 ? 0 : sizeof(onesided::SharedTables) + shared,
       .arena_head_bytes = sizeof(onesided::SharedTables),
       .huge_max = options.get(engine::Option::shm_huge_max),
       .identity_bytes = has_cma ? sizeof(onesided::OwnedRecords) : 0,
       .has_traced = options.get(engine::Option::shm_pull_max) != 0 && shm::TracedMemory::is_safe()});
  if (!connections) {
    if (is_forced) {
      connections.error().message = fmt::format(
          "no shared memory with peers of this host, and path=shm permits no other "
          "path: {}{}",
          connections.error().message, options.shm_directory().empty() ? "" : ": correct FAIRLEAD_SHM_DIRECTORY");
      return std::unexpected(std::move(connections.error()));
    }
    base::log(LogLevel::warning, LogTopic::shm, own.to_string(),
              fmt::format("no shared memory with peers of this host, UDP instead: {}", connections.error().message));
    return nullptr;
  }
  return std::make_unique<shm::Transport>(
      std::move(*connections),
      shm::TransportOptions{.is_forced = is_forced,
                            .give_up_after = std::chrono::milliseconds(options.get(engine::Option::give_up_after)),
                            .connect_within = std::chrono::milliseconds(options.get(engine::Option::unreachable_after)),
                            .copied_max = options.get(engine::Option::embedded_max),
                            .pull_min = options.get(engine::Option::shm_pull_min),
                            .pull_max = options.get(engine::Option::shm_pull_max)});
}

}  // namespace fairlead::embedded
