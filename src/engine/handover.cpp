#include "engine/handover.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/saved.hpp"
#include "qp/pairs_handover.hpp"

namespace fairlead::engine {
namespace {

std::array<std::uint64_t, EngineState::kFixedOptions.size()> fixed(const EngineOptions& options) {
  std::array<std::uint64_t, EngineState::kFixedOptions.size()> values{};
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = options.get(EngineState::kFixedOptions[i]);
  return values;
}

}  // namespace

// Saving -------------------------------------------------------------------------------------------------------------

std::string Handover::obstacle() const {
  if (!engine_.transports_) return "it has no network";
  const bool has_local_peers = engine_.shm_transport() != nullptr && engine_.shm_transport()->has_peers();
  return has_local_peers ? "a process of this host shares memory with it" : "";
}

void Handover::part_from_local_peers(bool is_parting, base::Instant now) {
  if (engine_.transports_) engine_.transports_->part_from_local_peers(is_parting, now);
}

bool Handover::has_parted(std::string& why) const {
  const shm::Transport* const shm = engine_.shm_transport();
  if (shm == nullptr || !shm->has_peers()) return true;
  const bool is_forced = shm->is_forced();
  why = fmt::format("the engine at {} looks for a peer of this host", engine_.address().to_string());
  shm->for_each_peer([&](const base::SocketAddress& address, const shm::Connection&) {
    why = is_forced ? fmt::format("{} shares memory with the engine at {}, and FAIRLEAD_PATH=shm permits no other way",
                                  address.to_string(), engine_.address().to_string())
                    : fmt::format("{} shares memory with the engine at {}, and something between them is not done",
                                  address.to_string(), engine_.address().to_string());
  });
  return false;
}

void Handover::meet_again(const EngineState& saved, base::Instant now) {
  if (engine_.transports_) engine_.transports_->meet_again(saved.parted, now);
}

void Handover::hold_answers(bool is_held) {
  messages_.hold_answers(is_held);
  if (engine_.pairs_) engine_.pairs_->hold(is_held);
}

bool Handover::is_still() const {
  const transport::Transports* const transports = engine_.transports_.get();
  return transports != nullptr && transports->link().is_still() && !transports->has_news() &&
         !transports->has_arrivals() && !engine_.messages_.is_copying();
}

Result<EngineState> Handover::save() {
  if (const std::string why = obstacle(); !why.empty()) return std::unexpected(Error{Status::not_supported, 0, why});
  auto link = engine_.transports_->link().save();
  if (!link) return std::unexpected(std::move(link.error()));
  if (!is_still()) return std::unexpected(Error{Status::again, 0, "something is on its way to its peers"});
  auto messages = messages_.save();
  if (!messages) return std::unexpected(std::move(messages.error()));
  std::optional<qp::PairsState> pairs;
  if (engine_.pairs_) {
    auto its = qp::PairsHandover(*engine_.pairs_).save();
    if (!its) return std::unexpected(std::move(its.error()));
    pairs = std::move(*its);
  }
  EngineState saved{.address = engine_.address_,
                    .epoch = engine_.epoch_,
                    .seed = engine_.secrets_.seed(),
                    .secrets_drawn = engine_.secrets_.drawn(),
                    .fixed_options = fixed(engine_.options_),
                    .port_names = engine_.ports_.names(),
                    .ports = {},
                    .messages = std::move(*messages),
                    .active = active_.save(),
                    .pairs = std::move(pairs),
                    .link = std::move(*link),
                    .parted = engine_.shm_transport() != nullptr ? engine_.shm_transport()->partings().parted()
                                                                 : std::vector<base::SocketAddress>()};
  bool has_events = false;
  engine_.ports_.for_each([&](std::uint32_t slot, const Port& port) {
    has_events |= !port.events->is_empty() || (port.active && port.active->has_ready());
    PortState state{.slot = slot, .number = port.number, .dropped = port.dropped_no_buffer, .posted = {}};
    messages_.for_each_posted(port, [&](std::uint32_t receive) { state.posted.push_back(receive); });
    saved.ports.push_back(std::move(state));
  });
  if (has_events) return std::unexpected(Error{Status::again, 0, "events or active messages have not been taken"});
  return saved;
}

// Restoring ----------------------------------------------------------------------------------------------------------

Result<> Handover::check_options(const EngineState& saved) const {
  const auto values = fixed(engine_.options_);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] == saved.fixed_options[i]) continue;
    const auto name = option_table()[static_cast<std::size_t>(EngineState::kFixedOptions[i])].name;
    return base::cannot_restore(
        fmt::format("{} was {} and would be {}: that takes a restart", name, saved.fixed_options[i], values[i]));
  }
  return {};
}

Result<> Handover::restore(const EngineState& saved, base::Instant now) {
  if (auto checked = check_options(saved); !checked) return checked;
  if (!engine_.transports_ || saved.epoch != engine_.epoch_ || saved.seed != engine_.secrets_.seed())
    return base::cannot_restore("it is not the engine that was handed over");
  engine_.secrets_.skip_to(saved.secrets_drawn);
  if (auto restored = restore_ports(saved); !restored) return restored;
  const auto peers_max = static_cast<std::uint32_t>(engine_.options_.get(Option::peers_max));
  if (auto restored = active_.restore(saved.active, peers_max, now); !restored) return restored;
  if (auto restored = messages_.restore(saved.messages, now); !restored) return restored;
  if (auto posted = post_receives(saved); !posted) return posted;
  if (saved.pairs) {
    auto restored = qp::PairsHandover(engine_.pairs()).restore(*saved.pairs, now, peers_max);
    if (!restored) return restored;
  }
  for (const link::PeerState& peer : saved.link.peers) {
    if (!peer.session) continue;
    for (const link::Reassembly::Slot& slot : peer.session->slots)
      if (slot.is_open && slot.target != 0 && !messages_.is_arrival(slot.target, slot.size) &&
          !active_.is_arrival(slot.target, slot.size) &&
          !(engine_.pairs_ && qp::PairsHandover(*engine_.pairs_).is_arrival(slot.target, slot.size)))
        return base::cannot_restore("a message on its way has no place");
  }
  return engine_.transports_->restore(saved.link, now);
}

Result<> Handover::finish(const EngineState& saved) {
  if (messages_.without_memory() != 0) return base::cannot_restore("an operation belongs to no application");
  return saved.pairs ? qp::PairsHandover(engine_.pairs()).finish(*saved.pairs) : Result<>();
}

Result<> Handover::restore_ports(const EngineState& saved) {
  if (!engine_.ports_.restore(saved.port_names)) return base::cannot_restore("its ports do not fit in the table");
  for (const PortState& port : saved.ports) {
    if (auto restored = engine_.ports_.restore(port.slot, port.number); !restored) return restored;
    engine_.ports_[port.slot].dropped_no_buffer = port.dropped;
  }
  bool are_whole = true;
  engine_.ports_.for_each([&](std::uint32_t, const Port& port) { are_whole &= port.events != nullptr; });
  return are_whole ? Result<>() : base::cannot_restore("a port has no number");
}

Result<> Handover::post_receives(const EngineState& saved) {
  std::ptrdiff_t posted = 0;
  for (const PortState& port : saved.ports) {
    for (const std::uint32_t slot : port.posted)
      if (!messages_.post(engine_.ports_.handle(port.slot), slot))
        return base::cannot_restore("a buffer is not of its port");
    posted += static_cast<std::ptrdiff_t>(port.posted.size());
  }
  const auto is_posted = [](const OperationState& state) {
    return state.operation.kind == OperationKind::receive && state.operation.is_in_chain;
  };
  if (std::ranges::count_if(saved.messages.operations, is_posted) != posted)
    return base::cannot_restore("a buffer is posted nowhere");
  return {};
}

}  // namespace fairlead::engine
