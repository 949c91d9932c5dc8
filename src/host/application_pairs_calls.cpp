// Calls: check, carry out, answer.

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "host/application_pairs.hpp"
#include "host/pair_calls.hpp"
#include "host/pair_refusals.hpp"

namespace fairlead::host {
namespace {

using Kind = PairCall::Kind;

}  // namespace

void ApplicationPairs::take_call(const TakenRequest& taken) {
  const PairRequest& head = taken.head;
  if (taken.body.size() < sizeof(PairCall) || (taken.body.size() - sizeof(PairCall)) % sizeof(MemoryPiece) != 0 ||
      taken.body.size() > sizeof(PairCall) + sizeof(MemoryPiece) * kMemoryPiecesMax ||
      head.opcode > std::to_underlying(Kind::linger) ||
      (head.slot >= kPairCallsMax && head.slot != PairCalls::kNoSlot)) {
    return blame("it sent a malformed call");
  }
  PairCall call;
  std::memcpy(&call, taken.body.data(), sizeof call);
  std::array<MemoryPiece, kMemoryPiecesMax> pieces;
  const auto rest = taken.body.subspan(sizeof call);
  if (!rest.empty()) std::memcpy(pieces.data(), rest.data(), rest.size());
  carry_out(static_cast<Kind>(head.opcode), {call, std::span(pieces).first(rest.size() / sizeof(MemoryPiece))},
            head.slot);
}

/// Carries out a call. A call that lacks memory has no effect.
void ApplicationPairs::carry_out(Kind kind, const TakenCall& taken, std::uint16_t slot) try {
  const std::uint64_t number = taken.call.number;
  if (!waits(kind)) return answer(slot, number, carry_out_at_once(kind, taken));
  if (endings_.size() >= kEndingsMax) return answer(slot, number, refused(Status::again, "too many calls at once"));
  if (endings_.size() == endings_.capacity()) endings_.reserve(2 * endings_.size() + 1);
  ServedMemory::Region before;
  auto begun = begin(kind, taken, before);
  if (!begun) return answer(slot, number, std::unexpected(std::move(begun.error())));
  endings_.push_back({kind, taken.call, slot, std::move(*begun), std::move(before)});
} catch (const std::bad_alloc&) {
  answer(slot, taken.call.number, std::unexpected(Error{Status::no_memory, ENOMEM, "no memory"}));
}

/// Returns whether operations in flight must end before the call is answered.
bool ApplicationPairs::waits(Kind kind) {
  return kind == Kind::close_pair || kind == Kind::change_pair || kind == Kind::fail_pair ||
         kind == Kind::change_region || kind == Kind::remove_region;
}

Result<PairAnswer> ApplicationPairs::carry_out_at_once(Kind kind, const TakenCall& taken) {
  const PairCall& call = taken.call;
  switch (kind) {
    case Kind::open_pair:
      return pairs_.open(call, {.completions = stream_, .notices = notices_},
                         call.shares_receives != 0 ? queues_.find(call.queue, call.queue_generation) : nullptr);
    case Kind::pair_facts:
      return pairs_.facts(call);
    case Kind::open_queue:
      return queues_.open(call, notices_);
    case Kind::close_queue:
      return queues_.close(call);
    case Kind::change_queue:
      return queues_.change(call);
    case Kind::queue_facts:
      return queues_.facts(call);
    case Kind::add_region:
      return memory_.add_region(call, taken.pieces);
    case Kind::add_window:
      return memory_.add_window(call);
    case Kind::remove_window:
      return memory_.remove_window(call);
    case Kind::linger:
      pairs_.begin_linger();
      lingers_ = call.number;
      return PairAnswer{};
    default:
      return memory_.unbind_windows(call);
  }
}

// Writes the answer to the slot that the call names. The host engine does not check whether the slot is free: an
// application that names one slot twice only overwrites its own answer.
void ApplicationPairs::answer(std::uint16_t slot, std::uint64_t number, const Result<PairAnswer>& with) {
  if (slot == PairCalls::kNoSlot) return;
  PairReply& reply = page().replies[slot];
  PairAnswer answer;
  if (with) {
    answer = *with;
  } else {
    answer.status = static_cast<std::uint32_t>(with.error().status);
    answer.system_errno = with.error().system_errno;
    const std::string& text = with.error().message;
    text.copy(answer.text.data(), answer.text.size() - 1);
  }
  reply.answer = answer;
  reply.answered.store(number, std::memory_order_release);
  has_answered_ = true;
}

// Calls that wait ----------------------------------------------------------------------------------------------------

/// `before` receives the previous state of a region, if the call concerns one.
Result<qp::Withdrawal> ApplicationPairs::begin(Kind kind, const TakenCall& taken, ServedMemory::Region& before) {
  const PairCall& call = taken.call;
  switch (kind) {
    case Kind::close_pair:
      return pairs_.begin_close(call);
    case Kind::change_pair:
      return pairs_.begin_change(call);
    case Kind::fail_pair:
      return pairs_.begin_fail(call);
    case Kind::change_region:
      return memory_.begin_change_region(call, taken.pieces, before);
    default:
      return memory_.begin_remove_region(call.key, before);
  }
}

/// Looks at kEndingsInTurn of them, in turn. Returns true if any withdrawal has ended.
bool ApplicationPairs::end_endings() {
  bool any = false;
  for (std::size_t looks = std::min(endings_.size(), kEndingsInTurn); looks > 0; --looks) {
    if (next_ending_ >= endings_.size()) next_ending_ = 0;
    Ending& ending = endings_[next_ending_];
    if (!core_.is_over(ending.withdrawal)) {
      ++next_ending_;
      continue;
    }
    finish(ending);
    std::swap(ending, endings_.back());
    endings_.pop_back();
    any = true;
  }
  return any;
}

/// The application is about to exit, and wants its sends to be complete before.
void ApplicationPairs::end_linger() {
  if (!pairs_.is_sending()) page().lingered.store(std::exchange(lingers_, 0), std::memory_order_release);
}

void ApplicationPairs::finish(const Ending& ending) {
  if (ending.kind == Kind::close_pair) pairs_.end_close(ending.call.object);
  if (ending.kind == Kind::change_pair) pairs_.end_change(ending.call);
  memory_.forget(ending.region);
  answer(ending.slot, ending.call.number, PairAnswer{});
}

}  // namespace fairlead::host
