#include "sim/replacement.hpp"

#include <algorithm>
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
void spoil(engine::EngineState& state, Sabotage& sabotage) {
  for (link::PeerState& peer : state.link.peers) {
    if (sabotage.is(Sabotage::Kind::forgotten_segment)) {
      const auto sent = std::ranges::count_if(peer.segments, &link::SegmentState::is_sent);
      peer.segments.resize(static_cast<std::size_t>(sent) - (sent != 0 ? 1 : 0));
    }
    if (!peer.session) continue;
    if (peer.session->sealed && peer.session->sealed->keys.next && sabotage.is(Sabotage::Kind::forgotten_keys)) {
      peer.session->sealed->keys.next.reset();
      peer.session->sealed->next_binding.reset();
    }
    if (peer.session->ahead.empty() && sabotage.is(Sabotage::Kind::skipped_sequence)) ++peer.session->to_receive;
    if (peer.session->ahead.size() > 0 && sabotage.is(Sabotage::Kind::forgotten_arrival))
      peer.session->ahead.pop_back();
  }
  if (!state.messages.answers.empty() && sabotage.is(Sabotage::Kind::forgotten_answer))
    state.messages.answers.pop_back();
  if (!state.pairs) return;
  for (qp::PairState& pair : state.pairs->pairs) {
    const bool can_receive = pair.attributes.state == verbs::QpState::rts;
    if (can_receive && !pair.current.is_active && sabotage.strikes(Sabotage::Kind::skipped_request)) pair.turn.pass();
    const bool is_last_waiting = !pair.sends.posted.empty() && pair.sends.next == pair.sends.head;
    if (is_last_waiting && pair.sends.begun == pair.sends.head && sabotage.strikes(Sabotage::Kind::forgotten_request))
      pair.sends.posted.pop_back();
  }
  for (qp::ReceiveQueueState& queue : state.pairs->queues)
    if (!queue.posted.empty() && sabotage.strikes(Sabotage::Kind::forgotten_receive)) queue.posted.pop_back();
}

}  // namespace

Replaced replace(engine::Engine& engine, Sabotage& sabotage, base::Instant now,
                 std::optional<link::SealSettings> sealing, const std::function<void(engine::Engine&)>& give) {
  engine::Handover handover(engine);
  auto saved = handover.save();
  if (!saved) return saved.error().status == Status::again ? Replaced::later : Replaced::never;
  engine::EngineState state = through_bytes(*saved);
  spoil(state, sabotage);
  const engine::EngineOptions options = engine.options();
  auto path = handover.take_path();
  std::destroy_at(&engine);
  std::construct_at(&engine, std::move(path), state.address, options, state.epoch, state.seed, nullptr,
                    std::move(sealing));
  const auto restored = engine::Handover(engine).restore(state, now);
  ENSURE(restored.has_value(), "{}", restored.error().message);
  for (const auto& [slot, operation] : saved->messages.operations) {
    const engine::OperationHandle name{slot, static_cast<std::uint32_t>(saved->messages.operation_names[slot]), {}};
    const engine::PortHandle port = engine.ports().handle(operation.port);
    ENSURE(engine::Handover(engine).give_memory(port, name, operation.cookie, operation.memory),
           "operation {} gets no memory", slot);
  }
  if (give) give(engine);
  const auto finished = engine::Handover(engine).finish(state);
  ENSURE(finished.has_value(), "{}", finished.error().message);
  return Replaced::done;
}

}  // namespace fairlead::sim
