#pragma once
// Hands an engine over to the next program in this process: saves the state that outlives this program
// (engine_state.hpp), and reports what prevents it.

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "engine/active_handover.hpp"
#include "engine/engine.hpp"
#include "engine/engine_state.hpp"
#include "engine/messages_handover.hpp"

namespace fairlead::engine {

class Handover {
 public:
  /// `engine` must outlive this object.
  explicit Handover(Engine& engine) : engine_(engine), messages_(engine.messages_), active_(engine.active_) {}

  /// Returns why a handover is impossible; empty if it is possible.
  std::string obstacle() const;
  /// Begins to part from peers of this host that share memory, or goes on with them.
  void part_from_local_peers(bool is_parting, base::Instant now);
  /// Returns whether no peer shares memory, or save() has another obstacle; else `why` names a peer.
  bool has_parted(std::string& why) const;
  /// Meets those from which the previous program has parted. The engine has started.
  void meet_again(const EngineState& saved, base::Instant now);
  /// While held, answers with a payload and requests of queue pairs wait.
  void hold_answers(bool is_held);
  /// Returns whether nothing of ours is in transit, and nothing that arrived waits.
  bool is_still() const;
  /// Returns `again` if the engine is not still or events wait at its ports. Using the engine afterwards invalidates
  /// the result.
  Result<EngineState> save();
  /// Takes what is left after save().
  std::unique_ptr<path::Path> take_path() { return engine_.transports_->take_path(); }

  /// Restores the state into a new engine with the same address, epoch and seed. Afterwards each operation needs its
  /// memory, and each queue pair and region what PairsHandover says.
  Result<> restore(const EngineState& saved, base::Instant now);
  /// Returns false if there is no such operation, its cookie differs, it has memory already, or the memory is too
  /// short.
  bool give_memory(PortHandle port, OperationHandle operation, std::uint64_t cookie, std::span<const iovec> memory) {
    return messages_.give_memory(port, operation, cookie, memory);
  }
  /// Segments and arrivals of active ports.
  ActiveHandover& active() { return active_; }
  /// Called when all has its memory, before the engine is used. Returns an error if something has none.
  Result<> finish(const EngineState& saved);

 private:
  Result<> check_options(const EngineState& saved) const;
  Result<> restore_ports(const EngineState& saved);
  Result<> post_receives(const EngineState& saved);

  Engine& engine_;
  MessagesHandover messages_;
  ActiveHandover active_;
};

}  // namespace fairlead::engine
