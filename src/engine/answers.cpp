#include "engine/answers.hpp"

#include <utility>

#include "base/rare.hpp"

namespace fairlead::engine {

void Answers::answer(link::PeerHandle peer, const wire::Envelope& envelope, std::uint64_t exposure, base::Instant now) {
  // Answers to one peer keep their order.
  const bool is_long = exposure != 0;
  const bool has_to_wait =
      (is_held_ && is_long) || waiting_.has(peer) || base::rare("engine: an answer waits for a later pass");
  const Status status = has_to_wait ? Status::again : submit(peer, {envelope, exposure}, now);
  if (status != Status::again) return;
  const auto [is_taken, excess] = waiting_.add(peer, {envelope, exposure}, now);
  if (excess) context_.transports->offences().condemn(*excess, transport::Offence::takes_no_answers);
  if (!is_taken) end(exposure, Status::no_memory, now);
}

void Answers::tell_done(link::PeerHandle peer, std::uint64_t cookie, Status status, base::Instant now) {
  answer(peer, {.operation = wire::Operation::done, .status = std::to_underlying(status), .cookie = cookie}, 0, now);
}

Status Answers::submit(link::PeerHandle peer, const Waiting& answer, base::Instant now) {
  link::Outgoing message{.envelope = answer.envelope, .pieces = {}, .size = 0, .cookie = 0, .wants_outcome = false};
  Operation* const readable = context_.operations.find(answer.exposure);
  if (answer.exposure != 0 && readable == nullptr) return Status::ok;  // withdrawn meanwhile
  if (readable != nullptr) {
    message.pieces = readable->memory;
    message.size = readable->length;
    message.cookie = context_.operations.cookie_of(slot_of(answer.exposure)).word();
    message.wants_outcome = true;
  }
  const Status status =
      context_.transports->submit(peer, message, now, readable != nullptr ? &readable->reference : nullptr);
  if (status != Status::ok && status != Status::again) end(answer.exposure, status, now);
  return status;
}

void Answers::end(std::uint64_t exposure, Status status, base::Instant now) {
  Operation* const readable = context_.operations.find(exposure);
  if (readable == nullptr) return;
  readable->is_link_pending = false;
  context_.operations.complete(slot_of(exposure), status, 0, now);
}

void Answers::retry(base::Instant now) {
  constexpr std::size_t kTriesInPass = 256;
  if (waiting_.is_empty() || is_held_) [[likely]]
    return;
  waiting_.retry(kTriesInPass, now, [&](link::PeerHandle peer, const Waiting& first) {
    return submit(peer, first, now) != Status::again;
  });
}

void Answers::drop(link::PeerHandle peer, Status status, base::Instant now) {
  waiting_.drop(peer, [&](const Waiting& answer) {
    ++context_.counters.dropped_answers;
    end(answer.exposure, status, now);
  });
}

}  // namespace fairlead::engine
