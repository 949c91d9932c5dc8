#include "qp/receive_queue.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include <fairlead/verbs/device.hpp>

#include "base/ensure.hpp"
#include "qp/completion_stream.hpp"
#include "wire/pair_words.hpp"

namespace fairlead::qp {

ReceiveQueue::ReceiveQueue(const ReceiveQueuePlan& plan) : plan_(plan), is_limit_armed_(plan.limit != 0) {
  plan_.depth = std::max(plan.depth, 1U);
  plan_.sges = std::max(plan.sges, 1U);
  make_room(plan_.depth);
}

void ReceiveQueue::post(const verbs::ReceiveRequest& request) {
  const std::uint32_t at = tail_.value & mask_;
  ++tail_;
  entries_[at] = {request.id, static_cast<std::uint32_t>(request.sges.size())};
  std::ranges::copy(request.sges, sges_.begin() + static_cast<std::ptrdiff_t>(std::size_t{at} * plan_.sges));
}

Status ReceiveQueue::change(std::uint32_t depth, std::uint32_t limit) {
  if (depth < count() || depth == 0) return Status::invalid;
  if (depth != plan_.depth) make_room(depth);
  plan_.limit = limit;
  is_limit_armed_ = limit != 0;
  return Status::ok;
}

// Makes room for `depth` receives; posted ones stay. Throws std::bad_alloc, and then has changed nothing.
void ReceiveQueue::make_room(std::uint32_t depth) {
  const std::uint32_t size = std::bit_ceil(depth), mask_before = mask_;
  std::vector<Entry> entries_before(size);
  std::vector<verbs::Sge> sges_before(std::size_t{size} * plan_.sges);
  entries_.swap(entries_before);
  sges_.swap(sges_before);
  plan_.depth = depth;
  mask_ = size - 1;
  for (ReceiveNumber number = head_; number != tail_; ++number) {
    const std::uint32_t from = number.value & mask_before, at = number.value & mask_;
    entries_[at] = entries_before[from];
    std::copy_n(sges_before.begin() + static_cast<std::ptrdiff_t>(std::size_t{from} * plan_.sges), plan_.sges,
                sges_.begin() + static_cast<std::ptrdiff_t>(std::size_t{at} * plan_.sges));
  }
}

void ReceiveQueue::tell_limit() {
  if (count() >= plan_.limit) return;
  is_limit_armed_ = false;
  if (plan_.events != nullptr)
    plan_.events->produce({std::to_underlying(verbs::AsyncEventType::srq_limit_reached), plan_.cookie});
}

void ReceiveQueue::check(std::uint32_t slot) const {
  ENSURE(count() <= mask_ + 1, "receive queue {}: {} receives in {} places", slot, count(), mask_ + 1);
}

Status ReceiveQueues::open(const ReceiveQueuePlan& plan, ReceiveQueueHandle& handle) {
  ReceiveQueue made(plan);
  if (plan.xrc_domain != 0 && numbered_.empty()) numbered_.assign(wire::SharedQueue::kNumberMost + 1, kNone);
  const std::uint32_t slot = queues_.acquire();
  if (slot == base::Slab<ReceiveQueue>::kNone) return Status::no_memory;
  queues_[slot] = std::move(made);
  if (plan.xrc_domain != 0) {
    const std::uint32_t number = take_number(slot);
    if (number == 0) {
      queues_.release(slot);
      return Status::no_memory;
    }
    queues_[slot].xrc_number = number;
    ++plan.stream->users;
  }
  handle = {slot, queues_.generation(slot)};
  return Status::ok;
}

/// Returns 0 if all numbers are in use.
std::uint32_t ReceiveQueues::take_number(std::uint32_t slot) {
  constexpr std::uint32_t kMostNumber = wire::SharedQueue::kNumberMost;
  for (std::uint32_t tries = 0; tries < kMostNumber; ++tries) {
    number_ = number_ % kMostNumber + 1;
    if (numbered_[number_] != kNone) continue;
    numbered_[number_] = slot;
    return number_;
  }
  return 0;
}

Status ReceiveQueues::close(ReceiveQueueHandle handle) {
  ReceiveQueue* queue = find(handle);
  if (queue == nullptr) return Status::stale;
  if (queue->users != 0) return Status::again;
  if (queue->xrc_number != 0) {
    numbered_[queue->xrc_number] = kNone;
    --queue->stream()->users;
  }
  *queue = {};
  queues_.release(handle.slot);
  return Status::ok;
}

void ReceiveQueues::let_go(std::uint32_t slot, bool is_own) {
  ReceiveQueue& queue = queues_[slot];
  ENSURE(queue.users > 0, "receive queue {} let go once too often", slot);
  if (--queue.users != 0 || !is_own) return;
  queue = {};
  queues_.release(slot);
}

void ReceiveQueues::check(const std::vector<std::uint32_t>& users,
                          std::map<const CompletionStream*, std::uint32_t>& of_stream) {
  queues_.for_each([&](std::uint32_t slot, const ReceiveQueue& queue) {
    queue.check(slot);
    const std::uint32_t counted = slot < users.size() ? users[slot] : 0;
    ENSURE(queue.users == counted, "receive queue {}: {} users, {} queue pairs have it", slot, queue.users, counted);
    if (queue.xrc_number == 0) return;
    ENSURE(numbered_[queue.xrc_number] == slot, "receive queue {}: its number is another's", slot);
    ++of_stream[queue.stream()];
  });
}

}  // namespace fairlead::qp
