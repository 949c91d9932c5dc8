#include "host/posted_receives.hpp"

#include <mutex>

#include "host/pair_refusals.hpp"

namespace fairlead::host {

// Shared receive queues ----------------------------------------------------------------------------------------------

void PostedReceives::make_room(std::uint32_t slot) {
  const std::scoped_lock lock(mutex_);
  if (slot >= queues_.size()) queues_.resize(slot + 1);
}

void PostedReceives::open_queue(std::uint32_t slot, const Queue& queue) {
  const std::scoped_lock lock(mutex_);
  queues_[slot] = queue;
}

void PostedReceives::close_queue(std::uint32_t slot) {
  const std::scoped_lock lock(mutex_);
  queues_[slot].is_open = false;
}

std::uint32_t PostedReceives::posted_to(std::uint32_t slot) const {
  const std::scoped_lock lock(mutex_);
  return slot < queues_.size() ? queues_[slot].posted : 0;
}

std::uint32_t PostedReceives::taken_from(std::uint32_t slot) const {
  const std::scoped_lock lock(mutex_);
  const Queue& queue = queues_[slot];
  return queue.posted - pairs_->receive_queue_facts(queue.handle).posted;
}

// Receives -----------------------------------------------------------------------------------------------------------

PairInboxState PostedReceives::save() const {
  const std::scoped_lock lock(mutex_);
  return inbox_.save();
}

void PostedReceives::serve(qp::QueuePairs& pairs, qp::CompletionStream& stream) {
  pairs_ = &pairs;
  stream_ = &stream;
  stream.receive_from(this);
}

std::uint32_t PostedReceives::take_turn() {
  const std::scoped_lock lock(mutex_);
  std::uint32_t count = 0;
  while (count < kReceivesInTurn && take_next()) ++count;
  in_vain_ = 0;
  if (count != 0) inbox_.hand_back();
  return count;
}

void PostedReceives::take_all() {
  const std::scoped_lock lock(mutex_);
  for (std::uint32_t count = 0; count < kPairRequestsMax && take_next();) ++count;
}

void PostedReceives::post_for(const qp::ReceiveQueue& queue) {
  const std::scoped_lock lock(mutex_);
  for (std::uint32_t count = 0; count < kPairRequestsMax && in_vain_ < kInVainMost && queue.is_empty(); ++count)
    if (!take_next()) break;
}

/// Returns false if there is none.
bool PostedReceives::take_next() {
  if (fault() != nullptr) return false;
  const auto taken = inbox_.next();
  if (taken) {
    post(*taken);
  } else if (inbox_.is_damaged()) {
    blame("it has damaged its ring of receives");
  }
  return taken.has_value();
}

void PostedReceives::post(const TakenRequest& taken) {
  using Kind = PairRequest::Kind;
  const auto kind = static_cast<Kind>(taken.head.kind);
  if (taken.head.bytes != 0 || (kind != Kind::post_receive && kind != Kind::post_to_queue))
    return blame("it posted an invalid receive");
  kind == Kind::post_receive ? post_to_pair(taken) : post_to_queue(taken);
}

// One thread of the application may close or reset an object while another posts to it. Such a post has no effect. Nor
// has one to a queue pair of another application, which feeds another stream.
void PostedReceives::post_to_pair(const TakenRequest& taken) {
  const qp::PairHandle pair{taken.head.object, taken.head.generation};
  if (!pairs_->takes_receives(pair, stream_)) {
    ++in_vain_;
    return;
  }
  const verbs::ReceiveRequest request{.id = taken.head.id, .sges = taken.pieces()};
  std::size_t count = 0;
  if (const int error = pairs_->post_receive(pair, {&request, 1}, count); error != 0) blame(fault_of_post(error));
}

void PostedReceives::post_to_queue(const TakenRequest& taken) {
  const std::uint32_t slot = taken.head.object;
  if (slot >= queues_.size() || !queues_[slot].is_open || queues_[slot].generation != taken.head.generation) {
    ++in_vain_;
    return;
  }
  Queue& queue = queues_[slot];
  if (taken.head.pieces > queue.pieces) return blame("it posted a receive that its queue cannot hold");
  const verbs::ReceiveRequest request{.id = taken.head.id, .sges = taken.pieces()};
  std::size_t count = 0;
  if (const int error = pairs_->post_to_receive_queue(queue.handle, {&request, 1}, count); error != 0)
    return blame(fault_of_post(error));
  ++queue.posted;
}

}  // namespace fairlead::host
