#pragma once
// The receives that an application posts: their ring, and the shared receive queues that it may post to. They have a
// ring of their own, so none waits behind a send or a call.
//
// The ring is served in the application's turns, before each of its calls, and when a message finds no receive. Only if
// the ring has none either, the message is dropped or refused. So a post need not wait for the host engine. A receive
// is published in the ring (release) before its post returns. A sender that is told of it sends later, and the engine
// gets the message later still; every step is ordered after the one before, by a release and an acquire or by the
// kernel. The look into the ring is an acquire, so it finds the receive.
//
// As in application.hpp, nothing read from the shared memory is trusted. A stranger decides how many messages find no
// receive, so such a look is bounded. If the ring is empty, it is one load. Otherwise it takes receives that use up
// capacity, or, in vain, a limited number between two turns.
//
// Threads: any thread that makes passes of the engine. The engine's lock is taken before mutex_.

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/short_lock.hpp"
#include "host/pair_inbox.hpp"
#include "host/pair_layout.hpp"
#include "qp/queue_pairs.hpp"
#include "qp/receive_source.hpp"

namespace fairlead::host {

class PostedReceives final : public qp::ReceiveSource {
 public:
  static constexpr std::uint32_t kReceivesInTurn = 64;
  static constexpr std::uint32_t kInVainMost = 64;  // taken between two turns although they have no effect

  explicit PostedReceives(PairInbox inbox) : inbox_(std::move(inbox)) {}

  /// A shared receive queue, by its slot.
  struct Queue {
    qp::ReceiveQueueHandle handle;
    std::uint32_t generation = 0, pieces = 0;
    std::uint32_t posted = 0;  // total
    bool is_open = false;
  };
  /// Makes room for this slot, without which open_queue() must not be called. May throw std::bad_alloc.
  void make_room(std::uint32_t slot);
  void open_queue(std::uint32_t slot, const Queue& queue);
  void close_queue(std::uint32_t slot);
  /// Returns the total number posted to a queue; 0 if it was never open.
  std::uint32_t posted_to(std::uint32_t slot) const;

  PairInboxState save() const;
  /// Returns whether the ring has no request that has not been begun.
  bool is_empty() const noexcept { return inbox_.is_empty(); }
  /// Returns why the application must leave; null if it need not. The text is a literal.
  const char* fault() const noexcept { return fault_.load(std::memory_order_relaxed); }

  // Under the engine's lock:
  /// Posts to `pairs`, for queue pairs that feed `stream` and for the shared receive queues. Call before all others.
  void serve(qp::QueuePairs& pairs, qp::CompletionStream& stream);
  /// Posts those of one turn, and returns their number.
  std::uint32_t take_turn();
  /// Posts all that are there.
  void take_all();
  void post_for(const qp::ReceiveQueue& queue) override;
  /// Returns the total number of receives taken out of a queue.
  std::uint32_t taken_from(std::uint32_t slot) const;

 private:
  bool take_next();
  void post(const TakenRequest& taken);
  void post_to_pair(const TakenRequest& taken);
  void post_to_queue(const TakenRequest& taken);
  void blame(const char* why) noexcept {
    if (fault() == nullptr) fault_.store(why, std::memory_order_relaxed);
  }

  qp::QueuePairs* pairs_ = nullptr;
  qp::CompletionStream* stream_ = nullptr;
  std::atomic<const char*> fault_{nullptr};

  mutable base::ShortLock mutex_;  // guards the members below
  PairInbox inbox_;
  std::vector<Queue> queues_;  // by slot
  std::uint32_t in_vain_ = 0;  // since the last turn
};

}  // namespace fairlead::host
