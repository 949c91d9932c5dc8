#pragma once
// A machine whose processes are all hosts of a world, if the scenario says so. They share memory as engines of one host
// do. Rings, sockets and doorbells are real, in one process and driven by one thread, so a run stays deterministic.
// Only time is virtual.

#include <memory>
#include <string>

#include "engine/engine.hpp"
#include "shm/transport.hpp"

namespace fairlead::sim {

class Machine {
 public:
  Machine();
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  /// Opens the shared-memory transport of a process of this machine.
  std::unique_ptr<shm::Transport> open_shm(const base::SocketAddress& own, std::uint64_t epoch,
                                           engine::EngineOptions options) const;
  /// Return whether a sleeping process (is_rung), or one about to sleep (has_news), has work from another process of
  /// its machine.
  static bool is_rung(engine::Engine& engine);
  static bool has_news(engine::Engine& engine);

 private:
  std::string folder_;  // the folder of the engines' sockets
};

}  // namespace fairlead::sim
