#pragma once
// The engines of one thread of the host engine, by address. They are created on demand.

#include <cstdint>
#include <map>
#include <memory>

#include <fairlead/error.hpp>

#include "base/socket_address.hpp"
#include "embedded/embedded_core.hpp"
#include "engine/engine_options.hpp"
#include "host/routes.hpp"
#include "host/served_engine.hpp"

namespace fairlead::host {

class ServedEngines {
 public:
  struct Limits {
    std::uint32_t engines_max = 0;     // of this thread
    std::size_t applications_max = 0;  // of each engine
  };

  /// `options` apply to each engine.
  ServedEngines(std::shared_ptr<Routes> routes, std::uint32_t thread, const engine::EngineOptions& options,
                const Limits& limits)
      : routes_(std::move(routes)), thread_(thread), options_(options), limits_(limits) {}
  ~ServedEngines();
  ServedEngines(const ServedEngines&) = delete;
  ServedEngines& operator=(const ServedEngines&) = delete;

  /// Returns the engine at this address, and creates it on the first request. Port 0 names the engine that others of
  /// this thread got for it.
  Result<std::shared_ptr<ServedEngine>> at(const base::SocketAddress& address);
  /// Adds an engine of the previous program in this process. `is_for_any_port`: at() returns it for port 0.
  Result<std::shared_ptr<ServedEngine>> restore(std::shared_ptr<embedded::EmbeddedCore> core, bool is_for_any_port);
  /// Returns null if there is none.
  std::shared_ptr<ServedEngine> find(const base::SocketAddress& address) const;
  bool is_for_any_port(const base::SocketAddress& address) const;

  auto begin() const { return engines_.begin(); }
  auto end() const { return engines_.end(); }

 private:
  /// Adds an engine, unless it is known. Returns `in_use` if another thread has its address.
  Result<std::shared_ptr<ServedEngine>> add(std::shared_ptr<embedded::EmbeddedCore> core);
  bool makes_room();

  const std::shared_ptr<Routes> routes_;
  const std::uint32_t thread_;
  const engine::EngineOptions& options_;
  const Limits limits_;
  std::map<base::SocketAddress, std::shared_ptr<ServedEngine>> engines_;
  std::map<base::SocketAddress, base::SocketAddress> for_any_port_;  // port 0 -> address
};

}  // namespace fairlead::host
