#pragma once
// A port that the host engine has opened for this process: its connection, its events, and its sleeper.

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>

#include "base/short_lock.hpp"
#include "engine/completion.hpp"
#include "engine/spare_receives.hpp"
#include "host/client_active.hpp"
#include "host/client_memory.hpp"
#include "host/event_room.hpp"
#include "queue/consumer.hpp"
#include "shm/socket.hpp"

namespace fairlead::host {

/// State of a port that takes spare receives; the lock of its core guards it.
struct ClientSpares {
  engine::SparePlan plan;
  std::uint32_t posted = 0, granted = 0;
};

class ClientPort {
 public:
  /// Creates the empty event queue, before the host engine is asked for the port.
  static Result<queue::Consumer> make_events(ClientMemory& memory, std::uint32_t index);

  /// `room` outlives this object.
  ClientPort(shm::Socket socket, queue::Consumer events, ClientMemory& memory, EventRoom& room, std::uint32_t index,
             std::uint32_t generation)
      : generation_(generation),
        reserved_(room),
        socket_(std::move(socket)),
        events_(std::move(events)),
        page_(memory.page().ports[index]),
        losses_(memory.page().losses) {}

  ClientPort(const ClientPort&) = delete;
  ClientPort& operator=(const ClientPort&) = delete;

  std::uint32_t generation() const noexcept { return generation_; }
  const shm::Socket& socket() const noexcept { return socket_; }

  /// [consumer] Reserves room for more events. Returns `no_memory` at the limits: kEventsMax, and that of all ports.
  Status reserve(std::uint32_t count);
  void release(std::uint32_t count) { reserved_.release(count); }
  /// [consumer] Fills `to` with available events. take(event, completion) converts each; if it returns false, the event
  /// is skipped.
  template <typename Take>
  std::size_t next(std::span<engine::Completion> to, Take&& take) {
    const std::scoped_lock lock(taking_);
    std::size_t count = 0;
    for (; count < to.size() && !drained_.empty(); ++count) {
      to[count] = drained_.front();
      drained_.pop_front();
    }
    drained_count_.store(drained_.size(), std::memory_order_release);
    const std::size_t before = count;
    Event event;
    while (count < to.size() && read(event)) count += take(event, to[count]) ? 1 : 0;
    if (count > before) events_.hand_back();
    return count;
  }
  /// Takes all events available now, for a later next(). Thread-safe.
  template <typename Take>
  void drain(Take&& take) {
    const std::scoped_lock lock(taking_);
    Event event;
    engine::Completion completion;
    while (read(event))
      if (take(event, completion)) drained_.push_back(completion);
    if (drained_.empty()) return;
    events_.hand_back();
    drained_count_.store(drained_.size(), std::memory_order_release);
    wake_sleeper();  // it may have looked after an event left the queue, and before it was counted here
  }
  bool has_arrival() const noexcept { return active && active->has_arrival(); }
  bool has_event() const noexcept { return drained_count_.load(std::memory_order_acquire) != 0 || !events_.is_empty(); }

  std::uint64_t dropped() const noexcept { return page_.dropped.load(std::memory_order_acquire); }
  /// Makes the next dropped message end a wait.
  void watch_drops() noexcept { drops_watched_.store(dropped(), std::memory_order_release); }
  bool has_dropped() const noexcept { return drops_watched_.load(std::memory_order_acquire) < dropped(); }

  /// From now on, each lost peer ends a wait.
  void watch_losses() noexcept {
    forget_losses();
    watches_losses_.store(true, std::memory_order_release);
  }
  bool has_lost() const noexcept {
    return watches_losses_.load(std::memory_order_acquire) &&
           losses_.load(std::memory_order_acquire) != losses_seen_.load(std::memory_order_relaxed);
  }

  void forget_losses() noexcept {
    losses_seen_.store(losses_.load(std::memory_order_acquire), std::memory_order_relaxed);
  }

  /// Ends the current wait, or the next one. Thread-safe.
  void interrupt();
  bool is_interrupted() const noexcept {
    return is_interrupted_.load(std::memory_order_acquire) || has_dropped() || has_lost();
  }
  /// Call after a wait.
  void forget_interrupt();
  /// The end of the host engine ends one wait, which reports it.
  bool has_told_end() const noexcept { return has_told_end_.load(std::memory_order_relaxed); }
  void tell_end() noexcept { has_told_end_.store(true, std::memory_order_relaxed); }

  /// Call before sleeping on the socket's descriptor. Returns false if is_over() is already true.
  template <typename IsOver>
  bool arm(IsOver&& is_over) {
    page_.sleeper.sleeping.exchange(1, std::memory_order_acq_rel);
    if (!is_over()) return true;
    disarm();
    return false;
  }
  /// Call after sleeping. Returns false if the host engine has ended.
  bool disarm();

  /// Keys of exposures. The lock of its core guards them.
  bool has_key() const noexcept { return page_.keys.given.load(std::memory_order_acquire) != keys_taken_; }
  /// Returns the next key. Read it before the request that uses it up: the host engine then replaces it.
  std::uint64_t next_key() const noexcept {
    return page_.keys.keys[keys_taken_ % kKeysAhead].load(std::memory_order_relaxed);
  }
  void use_key() noexcept { ++keys_taken_; }

  ClientSpares spares;
  std::unique_ptr<ClientActive> active;  // null: takes no active messages

 private:
  static constexpr std::uint32_t kEventsAtFirst = 64;
  static constexpr std::uint64_t kNoDrops = ~0ULL;

  bool read(Event& event);
  void wake_sleeper();

  const std::uint32_t generation_;
  EventShare reserved_;
  std::atomic<bool> is_interrupted_{false}, has_told_end_{false};
  std::atomic<std::uint64_t> drops_watched_{kNoDrops};
  shm::Socket socket_;
  base::ShortLock taking_;  // guards the consumer side of the queue
  queue::Consumer events_;
  std::deque<engine::Completion> drained_;  // to be delivered before those in the queue
  std::atomic<std::size_t> drained_count_{0};
  PortPage& page_;
  std::uint64_t keys_taken_ = 0;
  const std::atomic<std::uint64_t>& losses_;
  std::atomic<std::uint64_t> losses_seen_{0};
  std::atomic<bool> watches_losses_{false};
};

}  // namespace fairlead::host
