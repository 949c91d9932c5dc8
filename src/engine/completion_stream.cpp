#include "engine/completion_stream.hpp"

#include <utility>

#include <fairlead/verbs/device.hpp>

namespace fairlead::engine {

bool CompletionStream::produce(const FlowEvent& event, bool is_solicited) {
  if (is_broken_.load(std::memory_order_relaxed)) return false;
  if (events_.produce(event) != Status::ok) [[unlikely]] {
    if (plan_.ignores_overrun) return false;
    is_broken_.store(true, std::memory_order_release);
    if (plan_.events != nullptr) {
      plan_.events->produce({std::to_underlying(verbs::AsyncEventType::cq_err), plan_.events_cookie});
    }
    return false;
  }
  if (armed_ == Armed::no) [[likely]]
    return true;
  const bool is_failed = event.completion.status != verbs::WcStatus::success;
  if (armed_ == Armed::solicited && !is_solicited && !is_failed) return true;
  // A channel that is full leaves the queue armed: the next completion tells.
  if (plan_.channel->produce({Notice::kCompletion, plan_.channel_cookie})) armed_ = Armed::no;
  return true;
}

std::uint32_t CompletionStream::take(verbs::WorkCompletion* out, std::uint32_t max, FlowAccount* accounts) {
  std::uint32_t taken = 0;
  while (taken < max) {
    const FlowEvent* event = events_.consume();
    if (event == nullptr) break;
    FlowAccount& account = accounts[event->completion.qp_num & 0xFFF];
    Retired& retired = (event->retires & FlowEvent::kOfReceives) != 0 ? account.receives : account.sends;
    if (!retired.add(event->life, event->retires & ~FlowEvent::kOfReceives)) [[unlikely]]
      continue;
    out[taken++] = event->completion;
  }
  return taken;
}

}  // namespace fairlead::engine
