#include "qp/completion_stream.hpp"

#include <utility>

#include <fairlead/verbs/device.hpp>

#include "wire/pair_words.hpp"

namespace fairlead::qp {

// There is no room.
void CompletionStream::break_off() {
  if (plan_.ignores_overrun) return;
  is_broken_.store(true, std::memory_order_release);
  if (plan_.events != nullptr)
    plan_.events->produce({std::to_underlying(verbs::AsyncEventType::cq_err), plan_.events_cookie});
}

void CompletionStream::tell(bool is_notable) {
  if (armed_ == Armed::solicited && !is_notable) return;
  // A channel that is full leaves the queue armed: the next completion tells.
  if (plan_.channel->produce({Notice::kCompletion, plan_.channel_cookie})) armed_ = Armed::no;
}

std::uint32_t CompletionStream::take(verbs::WorkCompletion* out, std::uint32_t max, PairAccount* accounts) {
  std::uint32_t taken = 0;
  while (taken < max) {
    const PairEvent* event = events_.consume();
    if (event == nullptr) break;
    PairAccount& account = accounts[event->completion.qp_num % wire::PairPort::kPairs];
    Retired& retired = (event->retires & PairEvent::kOfReceives) != 0 ? account.receives : account.sends;
    if (!retired.add(event->incarnation, event->retires & ~PairEvent::kOfReceives)) [[unlikely]]
      continue;
    out[taken++] = event->completion;
  }
  return taken;
}

}  // namespace fairlead::qp
