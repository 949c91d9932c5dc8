#pragma once
// The state of an engine for the next program in this process (Handover::save): its identity, peers, ports,
// operations and queue pairs, and partly arrived messages. All names that peers know stay the same. Memory is not part
// of it; the caller that restores the engine supplies it again (Handover::give_memory, qp::PairsHandover).

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/active_state.hpp"
#include "engine/engine_options.hpp"
#include "engine/operation.hpp"
#include "link/peer_state.hpp"
#include "qp/pairs_state.hpp"

namespace fairlead::engine {

struct PortState {
  std::uint32_t slot = 0, number = 0;
  std::uint64_t dropped = 0;
  std::vector<std::uint32_t> posted;  // slots of its receives, in order
};

struct OperationState {
  std::uint32_t slot = 0;
  Operation operation;
};

struct PlacementState {
  std::uint32_t slot = 0;
  Placement placement;
};

/// An answer that had no room or was held back.
struct AnswerState {
  link::PeerHandle peer;
  wire::Envelope envelope;
  std::uint64_t exposure = 0;
};

struct MessagesState {
  std::vector<std::uint64_t> operation_names, placement_names;  // base::Slab::names()
  std::vector<OperationState> operations;
  std::vector<PlacementState> placements;
  std::vector<AnswerState> answers;
};

struct EngineState {
  /// What cannot change during an engine's life: sizes of its tables, and what its peers were told.
  static constexpr std::array kFixedOptions = {Option::operations_max, Option::peers_max, Option::window_segments};

  base::SocketAddress address;
  std::uint64_t epoch = 0, seed = 0, secrets_drawn = 0;
  std::array<std::uint64_t, kFixedOptions.size()> fixed_options{};
  std::vector<std::uint64_t> port_names;
  std::vector<PortState> ports;
  MessagesState messages;
  ActiveState active;
  std::optional<qp::PairsState> pairs;
  link::LinkState link;
  std::vector<base::SocketAddress> parted;  // peers of this host, to be met again through shared memory
};

template <typename Archive>
void fields(Archive& archive, RemotePort& port) {
  archive(port.engine, port.port);
}
template <typename Archive>
void fields(Archive& archive, PortState& port) {
  archive(port.slot, port.number, port.dropped, port.posted);
}
template <typename Archive>
void fields(Archive& archive, OperationState& state) {
  Operation& one = state.operation;
  archive(state.slot, one.kind, one.status, one.is_busy, one.is_cancel_wanted, one.has_patience, one.is_link_pending,
          one.is_answer_pending, one.is_in_chain, one.is_to_repeat, one.port, one.cookie, one.length, one.length_done,
          one.key, one.asker, one.asked_key, one.repeat_until, one.other, one.peer.slot, one.peer.generation, one.fill,
          one.size_min, one.messages_left, one.first_placement, one.last_placement);
}
template <typename Archive>
void fields(Archive& archive, PlacementState& state) {
  Placement& one = state.placement;
  archive(state.slot, one.state, one.status, one.operation, one.offset, one.size, one.source, one.next);
}
template <typename Archive>
void fields(Archive& archive, AnswerState& answer) {
  archive(answer.peer.slot, answer.peer.generation, answer.envelope, answer.exposure);
}
template <typename Archive>
void fields(Archive& archive, MessagesState& messages) {
  archive(messages.operation_names, messages.placement_names, messages.operations, messages.placements,
          messages.answers);
}
template <typename Archive>
void fields(Archive& archive, EngineState& engine) {
  archive(engine.address, engine.epoch, engine.seed, engine.secrets_drawn);
  for (std::uint64_t& value : engine.fixed_options) archive(value);
  archive(engine.port_names, engine.ports, engine.messages, engine.active, engine.pairs, engine.link, engine.parted);
}

}  // namespace fairlead::engine
