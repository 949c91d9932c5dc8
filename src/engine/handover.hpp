#pragma once
// Hands an engine over to the next program in this process: what of it outlives this one (engine_state.hpp), and what
// stands in the way.

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "engine/engine.hpp"
#include "engine/engine_state.hpp"
#include "engine/messages_handover.hpp"

namespace fairlead::engine {

class Handover {
 public:
  /// `engine` outlives it.
  explicit Handover(Engine& engine) : engine_(engine), messages_(engine.messages_) {}

  /// Why it cannot be; empty if it can.
  std::string obstacle() const;
  /// From now on answers to peers wait, or go again.
  void hold_answers(bool is_held) { messages_.hold_answers(is_held); }
  /// Nothing of ours is on its way, and nothing that came waits.
  bool is_still() const;
  /// again: it is not still, or events wait at its ports. If the engine is used after that, this is void.
  Result<EngineState> save();
  /// What is left after that.
  std::unique_ptr<path::Path> take_path() { return engine_.transports_->take_path(); }

  /// Into a new engine with that address, epoch and seed. Then all operations want their memory.
  Result<> restore(const EngineState& saved, base::Instant now);
  /// False: no such operation, it has another cookie, it has memory, or this is too short.
  bool give_memory(PortHandle port, OperationHandle operation, std::uint64_t cookie, std::span<const iovec> memory) {
    return messages_.give_memory(port, operation, cookie, memory);
  }
  bool is_memory_complete() { return messages_.without_memory() == 0; }

 private:
  Result<> check_options(const EngineState& saved) const;
  Result<> restore_ports(const EngineState& saved);
  Result<> post_receives(const EngineState& saved);

  Engine& engine_;
  MessagesHandover messages_;
};

}  // namespace fairlead::engine
