#include "host/served_queues.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <fairlead/verbs/device.hpp>

#include "host/pair_refusals.hpp"

namespace fairlead::host {
namespace {

constexpr verbs::DeviceLimits kQueueLimits;

}  // namespace

ServedQueue* ServedQueues::find(std::uint32_t slot, std::uint32_t generation) {
  if (slot >= queues_.size() || !queues_[slot].is_open || queues_[slot].generation != generation) return nullptr;
  return &queues_[slot];
}

const ServedQueue* ServedQueues::find(std::uint32_t slot) const {
  return slot < queues_.size() && queues_[slot].is_open ? &queues_[slot] : nullptr;
}

Result<PairAnswer> ServedQueues::open(const PairCall& call, qp::NoticeStream* notices) {
  if (call.depth == 0 || call.depth > kQueueLimits.max_srq_wr || call.pieces > kQueueLimits.max_srq_sge ||
      call.limit > call.depth)
    return senseless("a shared receive queue");
  auto free = std::ranges::find(queues_, false, &ServedQueue::is_open);
  if (free == queues_.end() && queues_.size() >= kReceiveQueuesMax) {
    return refused(Status::no_memory,
                   fmt::format("this process has {} shared receive queues at the host engine, the most one may have",
                               kReceiveQueuesMax));
  }
  const std::uint32_t pieces = std::max(call.pieces, 1U);
  const PairRoom::Share share = PairRoom::of_queue(call.depth, pieces);
  if (!room_.has_bytes(share.bytes) || !room_.reserve(share.completions)) {
    return refused(Status::no_memory, fmt::format("shared receive queue: {} bytes for posted requests, besides {} of "
                                                  "this process: the host engine gives each process {}",
                                                  share.bytes, room_.bytes(), room_.bytes_most()));
  }
  if (free == queues_.end()) free = queues_.emplace(queues_.end());
  const auto slot = static_cast<std::uint32_t>(free - queues_.begin());
  receives_.make_room(slot);
  const auto opened = core_.open_receive_queue({.depth = call.depth,
                                                .sges = pieces,
                                                .domain = domains_.enter(call.domain),
                                                .limit = call.limit,
                                                .events = notices,
                                                .cookie = kCookie | slot});
  if (!opened) {
    domains_.leave(call.domain);
    return std::unexpected(opened.error());
  }
  *free = {.handle = *opened,
           .slot = slot,
           .generation = free->generation + 1,
           .domain = call.domain,
           .depth = call.depth,
           .pieces = pieces,
           .is_open = true};
  receives_.open_queue(slot, {.handle = *opened, .generation = free->generation, .pieces = pieces, .is_open = true});
  room_.take(share);
  taken_[slot].store(0, std::memory_order_release);
  PairAnswer answer;
  answer.object = slot;
  answer.generation = free->generation;
  return answer;
}

Result<PairAnswer> ServedQueues::close(const PairCall& call) {
  ServedQueue* const queue = find(call.object, call.generation);
  if (queue == nullptr) return stale("shared receive queue");
  const Status status = core_.locked([&](qp::QueuePairs& pairs) {
    const Status closed = pairs.close_receive_queue(queue->handle);
    if (closed == Status::ok) receives_.close_queue(queue->slot);
    return closed;
  });
  if (status != Status::ok) return refused(status, "shared receive queue: queue pairs use it");
  queue->is_open = false;
  room_.give_back(PairRoom::of_queue(queue->depth, queue->pieces));
  domains_.leave(queue->domain);
  return PairAnswer{};
}

Result<PairAnswer> ServedQueues::change(const PairCall& call) {
  ServedQueue* const queue = find(call.object, call.generation);
  if (queue == nullptr) return stale("shared receive queue");
  if (call.depth == 0 || call.depth > kQueueLimits.max_srq_wr || call.limit > call.depth)
    return senseless("a change of a shared receive queue");
  const PairRoom::Share before = PairRoom::of_queue(queue->depth, queue->pieces),
                        after = PairRoom::of_queue(call.depth, queue->pieces);
  room_.give_back(before);
  const bool has_room = room_.has_bytes(after.bytes) && room_.reserve(after.completions);
  room_.take(before);
  if (!has_room) {
    return refused(Status::no_memory,
                   fmt::format("shared receive queue: the host engine gives a process {} bytes for posted requests",
                               room_.bytes_most()));
  }
  const Status status = core_.change_receive_queue(queue->handle, call.depth, call.limit);
  if (status == Status::no_memory) return refused(status, "shared receive queue: the host engine has no memory for it");
  if (status != Status::ok) return refused(status, "shared receive queue: more are posted than it shall hold");
  room_.give_back(before);
  room_.take(after);
  queue->depth = call.depth;
  return PairAnswer{};
}

Result<PairAnswer> ServedQueues::facts(const PairCall& call) {
  const ServedQueue* const queue = find(call.object, call.generation);
  if (queue == nullptr) return stale("shared receive queue");
  tell_taken(*queue);
  const qp::ReceiveQueueFacts facts = core_.receive_queue_facts(queue->handle);
  PairAnswer answer;
  answer.depth = facts.depth;
  answer.limit = facts.limit;
  answer.posted = facts.posted;
  return answer;
}

void ServedQueues::close_all() {
  for (ServedQueue& queue : queues_) {
    if (!std::exchange(queue.is_open, false)) continue;
    receives_.close_queue(queue.slot);
    core_.close_receive_queue(queue.handle);
  }
}

void ServedQueues::take_from(std::uint32_t slot) {
  if (!std::exchange(queues_[slot].was_taken_from, true)) ++taken_from_;
}

void ServedQueues::tell_taken() {
  for (std::uint32_t slot = 0; taken_from_ > 0; ++slot) {
    ServedQueue& queue = queues_[slot];
    if (!std::exchange(queue.was_taken_from, false)) continue;
    --taken_from_;
    if (queue.is_open) tell_taken(queue);
  }
}

void ServedQueues::tell_taken(const ServedQueue& queue) {
  const std::uint32_t taken = core_.locked([&](qp::QueuePairs&) { return receives_.taken_from(queue.slot); });
  taken_[queue.slot].store(taken, std::memory_order_release);
}

}  // namespace fairlead::host
