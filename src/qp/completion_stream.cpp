#include "qp/completion_stream.hpp"

#include <utility>

#include <fairlead/verbs/device.hpp>

#include "wire/pair_words.hpp"

namespace fairlead::qp {

// Called when there is no room.
void CompletionStream::break_off() {
  if (plan_.ignores_overrun) return;
  is_broken_.store(true, std::memory_order_release);
  if (plan_.events != nullptr)
    plan_.events->produce({std::to_underlying(verbs::AsyncEventType::cq_err), plan_.events_cookie});
}

void CompletionStream::tell(bool is_notable) {
  if (armed_ == Armed::solicited && !is_notable) return;
  // If the channel is full, the queue stays armed, and the next completion tries again.
  if (!plan_.channel->produce({Notice::kCompletion, plan_.channel_cookie})) return;
  armed_ = Armed::no;
  announced_ = events_.producer().produced();
}

void CompletionStream::arm(Armed armed) {
  if (armed > armed_) armed_ = armed;
  const std::uint64_t newest = armed_ == Armed::any ? events_.producer().produced() : last_notable_;
  if (newest > announced_ && !events_.is_empty()) tell(true);
}

/// Returns the next event of a current incarnation, or one that outlives it, and frees the slots that it retires.
const PairEvent* CompletionStream::next(PairAccount* accounts) {
  while (const PairEvent* event = events_.consume()) {
    PairAccount& account = accounts[event->completion.qp_num % wire::PairPort::kPairs];
    Retired& retired = event->is_of_receives() ? account.receives : account.sends;
    if (retired.add(event->incarnation, event->slots())) [[likely]]
      return event;
    if (event->outlives()) return event;
  }
  return nullptr;
}

std::uint32_t CompletionStream::take(verbs::WorkCompletion* out, std::uint32_t max, PairAccount* accounts) {
  std::uint32_t taken = 0;
  for (const PairEvent* event = nullptr; taken < max && (event = next(accounts)) != nullptr;)
    out[taken++] = event->completion;
  return taken;
}

std::uint32_t CompletionStream::take_events(std::span<PairEvent> out, PairAccount* accounts) {
  std::uint32_t taken = 0;
  for (const PairEvent* event = nullptr; taken < out.size() && (event = next(accounts)) != nullptr;)
    out[taken++] = *event;
  return taken;
}

}  // namespace fairlead::qp
