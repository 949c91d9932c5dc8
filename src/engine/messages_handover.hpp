#pragma once
// The part of a handover for messages and bulk transfers (handover.hpp).

#include <cstdint>
#include <span>

#include "engine/engine_state.hpp"
#include "engine/messages.hpp"

namespace fairlead::engine {

class MessagesHandover {
 public:
  explicit MessagesHandover(Messages& messages) : messages_(messages), context_(messages.context_) {}

  void hold_answers(bool is_held) { messages_.answers_.hold(is_held); }
  Result<MessagesState> save();
  /// Calls visit(slot) for each buffer that is posted at the port, in order.
  template <typename Visit>
  void for_each_posted(const Port& port, Visit&& visit) {
    for (std::uint32_t slot = port.posted.first(); slot != kNone; slot = context_.operations[slot].next) visit(slot);
  }

  /// Restores into a client that has only ports. The caller then calls post() and give_memory().
  Result<> restore(const MessagesState& saved, base::Instant now);
  /// Posts a restored receive behind those of its port. Returns false if the operation is no receive of that port.
  bool post(PortHandle port, std::uint32_t slot);
  /// Returns whether a placement of that size has that name.
  bool is_arrival(std::uint64_t target, std::uint64_t size);
  bool give_memory(PortHandle port, OperationHandle name, std::uint64_t cookie, std::span<const iovec> memory);
  std::uint32_t without_memory();

 private:
  static constexpr std::uint32_t kNone = Operations::kNone;

  Result<> restore(const OperationState& saved, base::Instant now);
  bool is_of_network(link::PeerHandle peer) const;
  bool has_sound_placements(std::uint64_t name, const Operation& operation);
  bool is_placement(std::uint32_t slot);

  Messages& messages_;
  MessageContext& context_;
};

}  // namespace fairlead::engine
