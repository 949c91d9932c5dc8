#pragma once
// A port: its event queue and the buffers posted to it.
//
// The thread of the layer above owns the consumer side of the event queue (reserve, next_event, the waiter's sleeping
// side). The engine's lock guards everything else.

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

/// State of a port that takes spares.
struct PortSpares {
  SparePlan plan;
  std::uint32_t posted = 0;  // spares that still take messages
};

struct Port {
  std::uint32_t number = 0;
  std::uint32_t operations = 0;  // not completed
  bool is_touched = false;       // has new events for which nobody was woken yet
  OperationChain posted;
  std::atomic<std::uint64_t> dropped_no_buffer{0};
  std::atomic<bool> watches_drops{false};   // its consumer wants to know of the next drop
  std::atomic<bool> watches_losses{false};  // its consumer wants to know of each lost peer

  // The consumer's count of events: reserved >= undelivered + those that may still come.
  std::uint32_t events_reserved = 0;

  std::atomic<bool> is_interrupted{false};
  std::unique_ptr<queue::EventQueue<Completion>> events;
  std::unique_ptr<queue::Waiter> waiter;
  std::unique_ptr<ActivePort> active;  // if the port takes active messages
  std::unique_ptr<PortSpares> spares;  // if the port ever took spares

  // Spares that may still be posted, whose events the consumer has reserved.
  std::atomic<std::uint32_t> spares_granted{0};

  // During a pass of its consumer: where events go directly, while there is room and nothing waits in the queue.
  Completion* direct = nullptr;
  Completion* direct_end = nullptr;

  bool has_news() const { return !events->is_empty() || (active && active->has_ready()); }
};

}  // namespace fairlead::engine
