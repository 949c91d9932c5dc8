#pragma once
// Completion queues, and the channels that report their events.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include <fairlead/error.hpp>
#include <fairlead/time.hpp>
#include <fairlead/verbs/device.hpp>
#include <fairlead/verbs/work_completion.hpp>

namespace fairlead::verbs {

struct ChannelState;
struct QueueState;

/// A completion channel delivers completion events. Several completion queues may share one channel.
class CompletionChannel {
 public:
  [[nodiscard]] static Result<CompletionChannel> open(const Context& context);
  /// EBUSY, and nothing changed, while a completion queue uses it.
  Result<> close();

  /// Readable while events are pending. It is a semaphore eventfd: each event is a new edge for epoll. The channel owns
  /// the descriptor; do not close it.
  int descriptor() const noexcept;
  /// Returns the cookie of the queue that has the oldest event. Blocks unless O_NONBLOCK is set on descriptor(); then
  /// EAGAIN means that there is no event. EINTR: a signal arrived. Acknowledge each event with
  /// CompletionQueue::ack_events().
  [[nodiscard]] Result<std::uint64_t> get_event();

  const std::shared_ptr<ChannelState>& state() const noexcept { return state_; }

 private:
  explicit CompletionChannel(std::shared_ptr<ChannelState> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<ChannelState> state_;
};

struct CompletionQueueOptions {
  std::uint32_t capacity = 1;  ///< minimum number of entries, 1..DeviceLimits::max_cqe
  const CompletionChannel* channel = nullptr;
  std::uint64_t cookie = 0;       ///< its events carry it
  std::uint32_t comp_vector = 0;  ///< below DeviceLimits::comp_vectors
  bool ignores_overrun = false;   ///< completions that do not fit are lost without an error
  /// Alternative to a channel: a thread of the context calls it for each event that request_notify() requested, and
  /// sleeps otherwise. The callback may poll, post and request the next event. destroy() returns EBUSY in the callback.
  /// It must not throw.
  std::function<void()> on_event{};
};

class CompletionQueue {
 public:
  /// EINVAL: capacity or comp_vector is out of range, or both a channel and on_event are given. ENOMEM.
  [[nodiscard]] static Result<CompletionQueue> create(const Context& context, const CompletionQueueOptions& options);
  /// EBUSY, and nothing changed, while a queue pair uses it. Waits until every fetched event is acknowledged, or
  /// on_event has returned. Events that were not fetched are discarded.
  Result<> destroy();

  /// EINVAL: the capacity is out of range, or below the number of entries in the queue. Shrinking does not free memory.
  [[nodiscard]] Result<> resize(std::uint32_t capacity);
  std::uint32_t capacity() const noexcept;

  /// Takes up to out.size() completions and returns how many. If the queue is empty, makes progress once and polls
  /// again. -1: the queue has overrun and is empty.
  [[nodiscard]] int poll(std::span<WorkCompletion> out) noexcept;

  /// As poll(), but waits for the first completion. It polls for a moment, then sleeps, while the engine's thread makes
  /// progress. Returns how many completions it took, at least one unless `out` is empty. ETIMEDOUT: the deadline
  /// passed. EIO: the queue has overrun and is empty. EINVAL: the queue has a channel or on_event, whose events this
  /// call would take. One thread at a time.
  [[nodiscard]] Result<std::size_t> wait(std::span<WorkCompletion> out, Instant deadline);

  /// Arms the queue: the next completion raises one event. With solicited_only, the next completion that is solicited
  /// or failed does. The event comes at once if the queue holds completions that came after its last event and were not
  /// polled. A queue armed for any completion stays so when this call asks for solicited ones. EINVAL: the
  /// queue has neither a channel nor on_event.
  int request_notify(bool solicited_only) noexcept;
  void ack_events(std::uint32_t count) noexcept;

  const std::shared_ptr<QueueState>& state() const noexcept { return state_; }

 private:
  explicit CompletionQueue(std::shared_ptr<QueueState> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<QueueState> state_;
};

}  // namespace fairlead::verbs
