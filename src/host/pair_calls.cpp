#include "host/pair_calls.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "host/call.hpp"

namespace fairlead::host {

Error PairCalls::has_ended() {
  return {Status::restarted, EIO,
          "the host engine has ended or has detached this process (the log of fairleadd says why): close the device, "
          "and open it again"};
}

std::uint16_t PairCalls::take_slot() {
  std::unique_lock lock(slots_mutex_);
  auto free = is_taken_.end();
  slot_came_free_.wait(lock, [&] { return (free = std::ranges::find(is_taken_, false)) != is_taken_.end(); });
  *free = true;
  return static_cast<std::uint16_t>(free - is_taken_.begin());
}

void PairCalls::give_back(std::uint16_t slot) {
  {
    const std::scoped_lock lock(slots_mutex_);
    is_taken_[slot] = false;
  }
  slot_came_free_.notify_one();
}

bool PairCalls::push(PairCall::Kind kind, const PairCall& call, std::span<const MemoryPiece> pieces,
                     std::uint16_t slot) {
  const PairRequest request{.kind = std::to_underlying(PairRequest::Kind::call),
                            .opcode = std::to_underlying(kind),
                            .bytes = static_cast<std::uint16_t>(sizeof call + pieces.size_bytes()),
                            .slot = slot};
  const bool is_taken = ring_.push(request, std::as_bytes(std::span(&call, 1)), std::as_bytes(pieces));
  ring_.wake();
  return is_taken;
}

Result<PairAnswer> PairCalls::make(PairCall::Kind kind, PairCall call, std::span<const MemoryPiece> pieces) {
  const std::uint16_t slot = take_slot();
  PairReply& reply = page_.replies[slot];
  bool is_taken = false;
  {
    std::unique_lock lock(mutex_);
    call.number = ++numbers_;
    bool is_there = true;
    for (std::uint32_t step = 0; !(is_taken = push(kind, call, pieces, slot)) && is_there; ++step) {
      lock.unlock();
      is_there = ring_.wait_a_moment(step);
      lock.lock();
    }
  }
  const bool is_answered =
      is_taken && host_.wait_for([&] { return reply.answered.load(std::memory_order_acquire) == call.number; });
  PairAnswer answer;
  if (is_answered) answer = reply.answer;
  give_back(slot);
  if (!is_answered) return std::unexpected(has_ended());
  const Status status = status_from(answer.status);
  if (status == Status::ok) return answer;
  answer.text.back() = '\0';
  return std::unexpected(Error{status, answer.system_errno, answer.text.data()});
}

}  // namespace fairlead::host
