// The engines of this process, by address. All transfer machines of a process with the same address share an engine,
// and the kernel gives its port to no other process.

#include "embedded/attach.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/random.h>

#include <array>
#include <cerrno>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "base/environment.hpp"
#include "base/event_descriptor.hpp"
#include "base/log.hpp"
#include "base/log_file.hpp"
#include "base/numa.hpp"
#include "base/settings.hpp"
#include "embedded/embedded_core.hpp"
#include "embedded/open_shm.hpp"
#include "engine/handover.hpp"
#include "engine/unknown_variables.hpp"
#include "path/faulty_path.hpp"
#include "path/sim_network.hpp"
#include "path/udp_path.hpp"
#include "seal/libcrypto.hpp"

namespace fairlead::embedded {
namespace {

struct Registry {
  std::mutex mutex;
  bool has_told = false;  // unknown variables were logged
  std::unordered_map<base::SocketAddress, std::weak_ptr<EmbeddedCore>, base::SocketAddressHash> engines;
};

// In the child of a fork() the registry is empty, so the child gets engines of its own.
constinit base::OfProcess<Registry> registry;

void tell_unknown_variables() {
  for (const std::string& line : engine::unknown_variables(base::whole_environment()))
    base::log(LogLevel::warning, LogTopic::engine, {}, line);
}

bool is_lo(const base::SocketAddress& address) {
  return address.ip == base::SocketAddress{}.ip;
}

/// `socket`: that of the previous program in this process, if it is open.
Result<std::unique_ptr<path::Path>> open_path(const base::SocketAddress& local, const engine::EngineOptions& options,
                                              base::FileDescriptor socket) {
  path::UdpOptions udp{.local = local};
  if (local.port == 0) {
    udp.local.port = static_cast<std::uint16_t>(options.get(engine::Option::port_first));
    udp.port_count = static_cast<std::uint32_t>(options.get(engine::Option::port_count));
  }
  udp.receive_buffer_bytes = static_cast<std::uint32_t>(options.get(engine::Option::receive_buffer));
  udp.send_buffer_bytes = static_cast<std::uint32_t>(options.get(engine::Option::send_buffer));
  udp.hot_sockets_max = static_cast<std::uint32_t>(options.get(engine::Option::hot_peers));
  auto path = socket.is_open() ? path::UdpPath::adopt(std::move(socket), udp) : path::UdpPath::open(udp);
  if (!path) return std::unexpected(std::move(path.error()));
  if (options.fault().has_faults()) return std::make_unique<path::FaultyPath>(std::move(*path), options.fault());
  return std::move(*path);
}

// Reads the keys for sealed sessions; returns nothing if the options name none.
Result<std::optional<link::SealSettings>> read_keys(const engine::EngineOptions& options) {
  const auto files = options.seal();
  if (!files && !options.seal_require().empty()) {
    return std::unexpected(Error{
        Status::invalid, 0,
        "seal_require without a key: set FAIRLEAD_SEAL to psk:FILE or x25519:FILE (`fairlead keygen` makes one), or "
        "unset FAIRLEAD_SEAL_REQUIRE"});
  }
  if (!files) return std::nullopt;
  if (auto loaded = seal::load_libcrypto(); !loaded) return std::unexpected(std::move(loaded.error()));
  auto ring = files->read();
  if (!ring) {
    ring.error().message = fmt::format("no key to seal with (FAIRLEAD_SEAL): {}", ring.error().message);
    return std::unexpected(std::move(ring.error()));
  }
  return link::SealSettings{.ring = std::make_shared<const seal::Keyring>(std::move(*ring)),
                            .required = options.seal_require()};
}

Result<base::LogFile> open_flight_log(const engine::EngineOptions& options) {
  auto log = base::LogFile::open(options.flight());
  if (!log) {
    log.error().message =
        fmt::format("no flight log ({}): {}", base::Settings::name_for_users("FAIRLEAD_FLIGHT"), log.error().message);
  }
  return log;
}

/// Logs the engine's main settings, for troubleshooting.
void tell_start(engine::Engine& engine) {
  if (engine.path() == nullptr || !base::is_logged(LogLevel::info, LogTopic::engine)) return;
  const engine::EngineOptions& options = engine.options();
  const std::uint64_t asked = options.get(engine::Option::receive_buffer);
  const std::uint64_t granted = engine.path()->receive_buffer_bytes();
  base::log(
      LogLevel::info, LogTopic::engine, engine.address().to_string(),
      fmt::format("the engine starts: UDP{} in datagrams of up to {} bytes, peers of this host {}; receive buffer {} "
                  "bytes{}; at most {} peers",
                  options.seal() ? ", sealed," : "", options.get(engine::Option::datagram_size),
                  engine.connections() != nullptr ? "through shared memory where both may" : "not otherwise", granted,
                  granted < asked ? fmt::format(" of {} asked for (net.core.rmem_max)", asked) : "",
                  options.get(engine::Option::peers_max)));
}

/// Epoch and seed.
using Birth = std::array<std::uint64_t, 2>;

/// Creates an engine. It makes no progress before it is started.
Result<std::shared_ptr<EmbeddedCore>> make_engine(const base::SocketAddress& local,
                                                  const engine::EngineOptions& options, const Birth& random,
                                                  base::FileDescriptor socket) {
  auto kick = base::open_event_descriptor("the engine", EFD_NONBLOCK);
  if (!kick) return std::unexpected(std::move(kick.error()));
  auto log = open_flight_log(options);
  if (!log) return std::unexpected(std::move(log.error()));
  std::unique_ptr<path::Path> path;
  base::SocketAddress address = local;
  std::optional<link::SealSettings> sealing;
  if (!is_lo(local)) {
    auto keys = read_keys(options);
    if (!keys) return std::unexpected(std::move(keys.error()));
    sealing = std::move(*keys);
    auto opened = open_path(local, options, std::move(socket));
    if (!opened) return std::unexpected(std::move(opened.error()));
    path = std::move(*opened);
    address = path->address();
  }
  std::unique_ptr<shm::Transport> shm;
  if (path) {
    auto opened = open_shm(address, random[0], options);
    if (!opened) return std::unexpected(std::move(opened.error()));
    shm = std::move(*opened);
  }
  auto engine = std::make_unique<engine::Engine>(std::move(path), address, options, random[0], random[1],
                                                 std::move(shm), std::move(sealing));
  tell_start(*engine);
  return std::make_shared<EmbeddedCore>(std::move(engine), std::move(*kick), std::move(*log),
                                        is_lo(local) ? std::nullopt : options.seal());
}

Result<std::shared_ptr<EmbeddedCore>> start_engine(const base::SocketAddress& local,
                                                   const engine::EngineOptions& options) {
  Birth random{};
  if (::getrandom(random.data(), sizeof random, 0) != sizeof random) {
    return std::unexpected(Error{Status::system, errno, "getrandom failed: an engine needs random bits for its epoch"});
  }
  // For the engine's tables, its shared memory, and all that its thread is the first to touch.
  const base::NearNode near(base::near_node());
  auto core = make_engine(local, options, random, {});
  if (!core) return core;
  if (auto started = (*core)->start(); !started) return std::unexpected(std::move(started.error()));
  return core;
}

}  // namespace

Result<std::shared_ptr<EmbeddedCore>> restore_embedded(const engine::EngineState& state, base::FileDescriptor socket,
                                                       const engine::EngineOptions& options, bool shares_any_port) {
  Registry& all = *registry;
  const std::scoped_lock lock(all.mutex);
  const base::NearNode near(base::near_node());
  auto core = make_engine(state.address, options, {state.epoch, state.seed}, std::move(socket));
  if (!core) return core;
  if ((*core)->address() != state.address || all.engines.contains(state.address)) {
    return std::unexpected(Error{Status::invalid, 0,
                                 fmt::format("the socket that was handed over for {} is bound to {}",
                                             state.address.to_string(), (*core)->address().to_string())});
  }
  if (auto restored = (*core)->restore(state); !restored) return std::unexpected(std::move(restored.error()));
  all.engines[state.address] = *core;
  base::SocketAddress any_port = state.address;
  any_port.port = 0;
  if (shares_any_port) all.engines[any_port] = *core;
  return core;
}

Result<> try_to_restore(const engine::EngineState& state, const engine::EngineOptions& options) {
  auto keys = read_keys(options);
  if (!keys) return std::unexpected(std::move(keys.error()));
  if (auto log = open_flight_log(options); !log) return std::unexpected(std::move(log.error()));
  path::SimNetwork nowhere(0);
  auto path = nowhere.attach(state.address);
  if (!path) return std::unexpected(std::move(path.error()));
  engine::Engine engine(std::move(*path), state.address, options, state.epoch, state.seed, nullptr, std::move(*keys));
  return engine::Handover(engine).restore(state, base::MonotonicClock::now());
}

namespace {

Result<std::shared_ptr<EmbeddedCore>> find_or_start(const base::SocketAddress& local,
                                                    const engine::EngineOptions& options, bool shares_any_port) {
  Registry& all = *registry;
  const std::scoped_lock lock(all.mutex);
  std::erase_if(all.engines, [](const auto& entry) { return entry.second.expired(); });
  const bool is_shared = local.port != 0 || shares_any_port;
  if (const auto found = all.engines.find(local); found != all.engines.end() && is_shared) {
    if (auto engine = found->second.lock()) return engine;
  }
  if (options.log()) base::suggest_log_levels(*options.log());
  if (!std::exchange(all.has_told, true)) tell_unknown_variables();
  auto engine = start_engine(local, options);
  if (!engine) return engine;
  if (is_shared) all.engines[local] = *engine;
  all.engines[(*engine)->address()] = *engine;
  return engine;
}

}  // namespace

// All that ask for port 0, "the first free one", share an engine.
Result<std::shared_ptr<EmbeddedCore>> attach_embedded(const base::SocketAddress& local,
                                                      const engine::EngineOptions& options) {
  return find_or_start(local, options, true);
}

Result<std::shared_ptr<EmbeddedCore>> attach_another(const base::SocketAddress& local,
                                                     const engine::EngineOptions& options) {
  return find_or_start(local, options, false);
}

}  // namespace fairlead::embedded
