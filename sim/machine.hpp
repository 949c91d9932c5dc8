#pragma once
// The machine on which all hosts of a world are processes, if its scenario says so: they share memory as engines of one
// host do. Rings, sockets and doorbells are the real ones, in one process and driven by one thread, so a run is still
// the same for each seed. Only time is virtual.

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

  /// How a process of this machine reaches the others.
  std::unique_ptr<shm::Transport> open_shm(const base::SocketAddress& own, std::uint64_t epoch,
                                           engine::EngineOptions options) const;
  /// Whether a process that sleeps, or would, has something to do for another one of its machine.
  static bool is_rung(const engine::Engine& engine);
  static bool has_news(engine::Engine& engine);

 private:
  std::string folder_;  // of the engines' sockets
};

}  // namespace fairlead::sim
