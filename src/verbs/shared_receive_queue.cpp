#include "verbs/shared_receive_state.hpp"

#include <algorithm>
#include <cerrno>

namespace fairlead::verbs {

Result<SharedReceiveQueue> SharedReceiveQueue::create(const ProtectionDomain& domain,
                                                      const SharedReceiveOptions& options) {
  const auto& owner = domain.state();
  if (!owner) return failure(EINVAL, "this protection domain is deallocated");
  ContextState& context = *owner->context;
  if (auto alive = check_alive(context); !alive) return std::unexpected(std::move(alive.error()));
  if (options.max_wr > context.limits.max_srq_wr || options.max_sge > context.limits.max_srq_sge ||
      options.max_wr == 0) {
    return failure(EINVAL, "shared receive queue: capacity beyond the device's limits");
  }
  const bool is_xrc = options.xrc_domain != nullptr;
  const auto queue = options.queue != nullptr ? options.queue->state() : nullptr;
  const auto xrc = is_xrc ? options.xrc_domain->state() : nullptr;
  if (is_xrc && (!xrc || xrc->context != owner->context || !queue || queue->context != owner->context))
    return failure(EINVAL, "shared receive queue: XRC needs an open domain and a completion queue of this context");
  if (!context.shared_receives.take()) return failure(ENOMEM, "all shared receive queues are in use");
  owner->members.add();
  auto state = std::make_shared<SharedReceiveState>();
  state->domain = owner;
  state->options = options;
  state->options.max_sge = std::max(options.max_sge, 1U);
  state->number_in_context = context.event_owners.add(options.cookie);
  auto opened = context.pair_core->open_receive_queue({.depth = options.max_wr,
                                                       .sges = state->options.max_sge,
                                                       .domain = owner->number,
                                                       .limit = options.limit,
                                                       .events = context.events,
                                                       .cookie = state->number_in_context,
                                                       .xrc_domain = is_xrc ? xrc->number : 0,
                                                       .stream = is_xrc ? queue->stream : nullptr});
  if (!opened) return failure(std::move(opened.error()));
  state->receives = *opened;
  state->options.xrc_domain = nullptr;
  state->options.queue = nullptr;
  if (is_xrc) {
    state->xrc_number = context.pair_core->receive_queue_facts(state->receives).xrc_number;
    state->xrc_domain = xrc;
    state->queue = queue;
    xrc->members.add();
    queue->users.add();
  }
  state->is_open = true;
  return SharedReceiveQueue(std::move(state));
}

Result<> SharedReceiveQueue::destroy() {
  if (!state_) return failure(EINVAL, "this shared receive queue is destroyed already");
  ContextState& context = *state_->domain->context;
  if (!context.is_dead() && state_->users.count() != 0)
    return failure(EBUSY, "queue pairs use the shared receive queue: destroy them first");
  state_.reset();
  return {};
}

Result<> SharedReceiveQueue::modify(std::optional<std::uint32_t> max_wr, std::optional<std::uint32_t> limit) {
  if (!state_) return failure(EINVAL, "this shared receive queue is destroyed");
  ContextState& context = *state_->domain->context;
  if (auto alive = check_alive(context); !alive) return alive;
  const qp::ReceiveQueueFacts facts = context.pair_core->receive_queue_facts(state_->receives);
  const std::uint32_t depth = max_wr.value_or(facts.depth);
  if (depth > context.limits.max_srq_wr || limit.value_or(0) > depth ||
      context.pair_core->change_receive_queue(state_->receives, depth, limit.value_or(facts.limit)) != Status::ok) {
    return failure(EINVAL,
                   "shared receive queue: max_wr below what is posted or beyond the device, or limit beyond it");
  }
  return {};
}

SharedReceiveOptions SharedReceiveQueue::query() const {
  SharedReceiveOptions now = state_->options;
  if (state_->domain->context->is_dead()) return now;
  const qp::ReceiveQueueFacts facts = state_->domain->context->pair_core->receive_queue_facts(state_->receives);
  now.max_wr = facts.depth;
  now.limit = facts.limit;
  return now;
}

std::uint32_t SharedReceiveQueue::number() const noexcept {
  return state_->xrc_domain ? state_->xrc_number : state_->receives.slot;
}

int SharedReceiveQueue::post(std::span<const ReceiveRequest> requests, std::size_t& taken) noexcept {
  taken = 0;
  if (state_->domain->context->is_dead()) return EIO;
  return state_->domain->context->pair_core->post_to_receive_queue(state_->receives, requests, taken);
}

}  // namespace fairlead::verbs
