#include "sim/replacement.hpp"

#include <memory>
#include <utility>

#include "base/ensure.hpp"
#include "base/saved.hpp"
#include "engine/handover.hpp"

namespace fairlead::sim {
namespace {

engine::EngineState through_bytes(engine::EngineState& state) {
  base::SavedWriter writer;
  writer(state);
  base::SavedReader reader(writer.bytes());
  engine::EngineState copy;
  reader(copy);
  ENSURE(reader.is_at_end(), "{} bytes of state cannot be read", writer.bytes().size());
  return copy;
}

/// Drops what a faulty program would lose.
void spoil(engine::EngineState& state, const Sabotage& sabotage) {
  for (link::PeerState& peer : state.link.peers) {
    if (!peer.session) continue;
    if (peer.session->ahead.empty() && sabotage.is(Sabotage::Kind::skipped_sequence)) ++peer.session->to_receive;
    if (peer.session->ahead.size() > 0 && sabotage.is(Sabotage::Kind::forgotten_arrival))
      peer.session->ahead.pop_back();
  }
  if (!state.messages.answers.empty() && sabotage.is(Sabotage::Kind::forgotten_answer))
    state.messages.answers.pop_back();
}

}  // namespace

Replaced replace(engine::Engine& engine, Sabotage& sabotage, base::Instant now) {
  engine::Handover handover(engine);
  auto saved = handover.save();
  if (!saved) return saved.error().status == Status::again ? Replaced::later : Replaced::never;
  engine::EngineState state = through_bytes(*saved);
  spoil(state, sabotage);
  const engine::EngineOptions options = engine.options();
  auto path = handover.take_path();
  std::destroy_at(&engine);
  std::construct_at(&engine, std::move(path), state.address, options, state.epoch, state.seed);
  const auto restored = engine::Handover(engine).restore(state, now);
  ENSURE(restored.has_value(), "{}", restored.error().message);
  for (const auto& [slot, operation] : saved->messages.operations) {
    const engine::OperationHandle name{slot, static_cast<std::uint32_t>(saved->messages.operation_names[slot]), {}};
    const engine::PortHandle port = engine.ports().handle(operation.port);
    ENSURE(engine::Handover(engine).give_memory(port, name, operation.cookie, operation.memory),
           "operation {} gets no memory", slot);
  }
  return Replaced::done;
}

}  // namespace fairlead::sim
