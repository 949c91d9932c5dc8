#pragma once
// A port: an attach point with its event queue and the buffers posted to it.
//
// The event queue's consumer side (reserve, next_event, the waiter's sleeping end) belongs to the face's thread; all
// else is changed under the engine's lock.

#include <atomic>
#include <cstdint>
#include <memory>

#include "engine/active_port.hpp"
#include "engine/completion.hpp"
#include "engine/operation.hpp"
#include "engine/spare_receives.hpp"
#include "queue/event_queue.hpp"
#include "queue/waiter.hpp"

namespace fairlead::engine {

/// Of a port that takes spares.
struct PortSpares {
  SparePlan plan;
  std::uint32_t posted = 0;  // that take messages
};

struct Port {
  std::uint32_t number = 0;
  std::uint32_t operations = 0;  // not yet completed
  bool is_touched = false;       // has new events that nobody was woken for yet
  OperationChain posted;
  std::atomic<std::uint64_t> dropped_no_buffer{0};
  std::atomic<bool> watches_drops{false};   // its consumer wants to know of the next one
  std::atomic<bool> watches_losses{false};  // and of each peer that is lost

  // Consumer's side of the account of events: reserved >= undelivered + what may still come.
  std::uint32_t events_reserved = 0;

  std::atomic<bool> is_interrupted{false};
  std::unique_ptr<queue::EventQueue<Completion>> events;
  std::unique_ptr<queue::Waiter> waiter;
  std::unique_ptr<ActivePort> active;  // of a port that takes active messages
  std::unique_ptr<PortSpares> spares;  // of a port that has ever taken any

  std::atomic<std::uint32_t> spares_granted{0};  // so many more may be posted: the consumer has reserved their events

  // During a pass of its consumer: where events go as long as there is room, and nothing waits in the queue before
  // them.
  Completion* direct = nullptr;
  Completion* direct_end = nullptr;

  bool has_news() const { return !events->is_empty() || (active && active->has_ready()); }
};

}  // namespace fairlead::engine
