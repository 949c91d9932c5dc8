#pragma once
// Completion queues and the channels that tell of them.

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

/// Where completion events are fetched. Several completion queues may share one.
class CompletionChannel {
 public:
  [[nodiscard]] static Result<CompletionChannel> open(const Context& context);
  /// EBUSY, and nothing changed, while a completion queue uses it.
  Result<> close();

  /// Readable while events wait; a semaphore, each event is a fresh edge. The channel's own; do not close it.
  int descriptor() const noexcept;
  /// The cookie of the queue that has an event, in the order of the events. Waits as descriptor() says: EAGAIN if it
  /// does not block and there is none, EINTR. Each has to be acknowledged: CompletionQueue::ack_events().
  [[nodiscard]] Result<std::uint64_t> get_event();

  const std::shared_ptr<ChannelState>& state() const noexcept { return state_; }

 private:
  explicit CompletionChannel(std::shared_ptr<ChannelState> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<ChannelState> state_;
};

struct CompletionQueueOptions {
  std::uint32_t capacity = 1;  ///< entries at least, 1..DeviceLimits::max_cqe
  const CompletionChannel* channel = nullptr;
  std::uint64_t cookie = 0;       ///< comes with its events
  std::uint32_t comp_vector = 0;  ///< below DeviceLimits::comp_vectors
  bool ignores_overrun = false;   ///< what finds no room is lost, without an error
  /// Instead of a channel: called for each event that request_notify() asked for, by one thread of the context that
  /// sleeps otherwise. It may poll, post and ask for the next event; to destroy the queue from it is EBUSY. It must not
  /// throw.
  std::function<void()> on_event{};
};

class CompletionQueue {
 public:
  /// EINVAL: capacity or comp_vector out of range, or a channel and on_event; ENOMEM.
  [[nodiscard]] static Result<CompletionQueue> create(const Context& context, const CompletionQueueOptions& options);
  /// EBUSY, and nothing changed, while a queue pair uses it. Waits until every event that was got is acknowledged, or
  /// on_event has returned; events not yet got are gone.
  Result<> destroy();

  /// EINVAL: out of range, or fewer than the entries in it. Shrinking keeps the room.
  [[nodiscard]] Result<> resize(std::uint32_t capacity);
  std::uint32_t capacity() const noexcept;

  /// Takes up to out.size() completions; on an empty queue it makes progress once and looks again. Returns how many; -1
  /// of a queue that overran and is empty.
  [[nodiscard]] int poll(std::span<WorkCompletion> out) noexcept;

  /// As poll(), but waits for the first completion. It polls for a moment, then sleeps until there is one, and the
  /// engine's thread does the work. How many were taken, at least one unless out is empty. ETIMEDOUT at the deadline,
  /// EIO of a queue that overran and is empty, EINVAL with a channel or on_event, whose events it would take. One
  /// thread at a time.
  Result<std::size_t> wait(std::span<WorkCompletion> out, Instant deadline);

  /// One event for the next completion that is added from now on; solicited_only: that is solicited or failed. "Any"
  /// stays armed when "solicited" is asked for after it. EINVAL without a channel or on_event.
  int request_notify(bool solicited_only) noexcept;
  void ack_events(std::uint32_t count) noexcept;

  const std::shared_ptr<QueueState>& state() const noexcept { return state_; }

 private:
  explicit CompletionQueue(std::shared_ptr<QueueState> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<QueueState> state_;
};

}  // namespace fairlead::verbs
