#include <fairlead/verbs/completion_queue.hpp>

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <mutex>

#include "verbs/queue_state.hpp"

namespace fairlead::verbs {

// Channels -----------------------------------------------------------------------------------------------------------

Result<CompletionChannel> CompletionChannel::open(const Context& context) {
  const auto& owner = context.state();
  if (!owner) return failure(EINVAL, "this context is closed");
  if (auto alive = check_alive(*owner); !alive) return std::unexpected(std::move(alive.error()));
  if (!owner->channels.take()) return failure(ENOMEM, "all completion channels of the context are in use");
  auto stream = owner->pair_core->open_notices();
  if (!stream) {
    owner->channels.give();
    return std::unexpected(std::move(stream.error()));
  }
  return CompletionChannel(std::make_shared<ChannelState>(owner, *stream));
}

Result<> CompletionChannel::close() {
  if (!state_) return failure(EINVAL, "this channel is closed already");
  if (state_->queues.count() != 0 && !state_->context->is_dead()) {
    return failure(EBUSY, std::to_string(state_->queues.count()) + " completion queues use the channel");
  }
  state_.reset();
  return {};
}

int CompletionChannel::descriptor() const noexcept {
  return state_->stream->descriptor();
}

Result<std::uint64_t> CompletionChannel::get_event() {
  if (auto alive = check_alive(*state_->context); !alive) return std::unexpected(std::move(alive.error()));
  std::uint64_t cookie = 0;
  if (auto notice = state_->owners.get(*state_->stream, cookie); !notice) {
    return std::unexpected(std::move(notice.error()));
  }
  return cookie;
}

// Queues -------------------------------------------------------------------------------------------------------------

Result<CompletionQueue> CompletionQueue::create(const Context& context, const CompletionQueueOptions& options) {
  const auto& owner = context.state();
  if (!owner) return failure(EINVAL, "this context is closed");
  if (auto alive = check_alive(*owner); !alive) return std::unexpected(std::move(alive.error()));
  if (options.capacity == 0 || options.capacity > owner->limits.max_cqe) {
    return failure(EINVAL, "completion queue: capacity " + std::to_string(options.capacity) + ", want 1 to " +
                               std::to_string(owner->limits.max_cqe));
  }
  if (options.comp_vector >= owner->limits.comp_vectors) {
    return failure(EINVAL, "completion queue: no such completion vector");
  }
  if (options.channel != nullptr && options.on_event) {
    return failure(EINVAL, "completion queue: a channel or a callback, not both");
  }
  std::shared_ptr<EventThread> event_thread;
  if (options.on_event) {
    auto running = EventThread::of(owner);
    if (!running) return std::unexpected(std::move(running.error()));
    event_thread = std::move(*running);
  }
  auto state = std::make_shared<QueueState>();
  if (!owner->queues.take()) return failure(ENOMEM, "all completion queues of the context are in use");
  state->context = owner;
  state->event_thread = std::move(event_thread);
  state->on_event = options.on_event;
  qp::CompletionStream::Plan plan{.capacity = options.capacity,
                                  .channel = nullptr,
                                  .events = owner->events,
                                  .channel_cookie = 0,
                                  .events_cookie = owner->event_owners.add(options.cookie),
                                  .ignores_overrun = options.ignores_overrun};
  state->number_in_context = plan.events_cookie;
  if (options.channel != nullptr) state->channel = options.channel->state();
  if (state->event_thread) state->channel = state->event_thread->channel();
  if (state->channel) {
    state->channel->queues.add();
    plan.channel = state->channel->stream;
    plan.channel_cookie = state->number_in_channel = state->channel->owners.add(
        state->event_thread ? reinterpret_cast<std::uintptr_t>(&state->on_event) : options.cookie);
  }
  auto stream = owner->pair_core->open_completions(plan);
  if (!stream) {
    state->drop_names();
    return std::unexpected(std::move(stream.error()));
  }
  state->stream = *stream;
  state->capacity = state->stream->capacity();
  return CompletionQueue(std::move(state));
}

Result<> CompletionQueue::destroy() {
  if (!state_) return failure(EINVAL, "this completion queue is destroyed already");
  if (!state_->context->is_dead()) {
    if (state_->users.count() != 0) return failure(EBUSY, "queue pairs use the completion queue: destroy them first");
    if (state_->event_thread && state_->event_thread->is_this_thread()) {
      return failure(EBUSY, "a completion queue cannot be destroyed by its own callback");
    }
    state_->drop_names();
  }
  state_.reset();
  return {};
}

Result<> CompletionQueue::resize(std::uint32_t capacity) {
  if (!state_) return failure(EINVAL, "this completion queue is destroyed");
  if (auto alive = check_alive(*state_->context); !alive) return alive;
  if (capacity == 0 || capacity > state_->context->limits.max_cqe) {
    return failure(EINVAL,
                   "completion queue: want a capacity of 1 to " + std::to_string(state_->context->limits.max_cqe));
  }
  const std::scoped_lock lock(state_->consumer);
  if (capacity < state_->stream->count()) {
    return failure(EINVAL, "completion queue: more entries are in it than it shall hold");
  }
  if (!state_->stream->grow(capacity)) return failure(ENOMEM, "completion queue: no memory to grow");
  state_->capacity = state_->stream->capacity();
  return {};
}

std::uint32_t CompletionQueue::capacity() const noexcept {
  return state_->capacity;
}

int CompletionQueue::poll(std::span<WorkCompletion> out) noexcept {
  QueueState& state = *state_;
  if (state.is_dead()) [[unlikely]]
    return -1;
  const auto take = [&]() -> std::uint32_t {
    if (state.stream->is_empty()) return 0;
    const std::scoped_lock lock(state.consumer);
    return state.stream->take(out.data(), static_cast<std::uint32_t>(out.size()), state.context->accounts);
  };
  if (const std::uint32_t count = take(); count != 0 || out.empty()) return static_cast<int>(count);
  if (state.context->pair_core->progress()) {
    if (const std::uint32_t count = take(); count != 0) return static_cast<int>(count);
  }
  return state.stream->is_broken() && state.stream->is_empty() ? -1 : 0;
}

namespace {

constexpr Duration kLookFor = std::chrono::microseconds(50);  // poll time before sleeping

/// Sleeps until the queue's next completion, or one that came since the queue was empty. Returns false at the deadline.
Result<bool> sleep(QueueState& state, Instant deadline) {
  if (!state.sleep) {
    const auto& context = state.context;
    if (!context->channels.take()) return failure(ENOMEM, "all completion channels of the context are in use");
    auto stream = context->pair_core->open_notices();
    if (!stream) {
      context->channels.give();
      return std::unexpected(std::move(stream.error()));
    }
    state.sleep = std::make_shared<ChannelState>(context, *stream);
    context->pair_core->listen(state.stream, *stream);
  }
  qp::NoticeStream& notices = *state.sleep->stream;
  state.context->pair_core->arm(state.stream, qp::CompletionStream::Armed::any);
  if (!state.stream->is_empty()) return true;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Instant::clock::now()).count();
  const int timeout = deadline == kNever ? -1 : static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000));
  pollfd one{.fd = notices.descriptor(), .events = POLLIN, .revents = 0};
  const int ready = ::poll(&one, 1, timeout);
  if (ready < 0 && errno != EINTR) return failure(errno, "completion queue: cannot sleep");
  // A notice of a completion that was polled meanwhile only causes another look.
  std::uint64_t taken = 0;
  if (ready > 0 && ::read(one.fd, &taken, sizeof taken) == sizeof taken) (void)notices.consume();
  return ready != 0 || Instant::clock::now() < deadline;
}

}  // namespace

Result<std::size_t> CompletionQueue::wait(std::span<WorkCompletion> out, Instant deadline) {
  if (state_->channel) return failure(EINVAL, "completion queue: its events go to a channel or a callback; wait there");
  const Instant looked_until = std::min(deadline, Instant::clock::now() + kLookFor);
  for (;;) {
    const int count = poll(out);
    if (count > 0 || out.empty()) return static_cast<std::size_t>(count);
    if (count < 0) return failure(EIO, "completion queue: it overran, or belongs to the process before fork()");
    if (Instant::clock::now() < looked_until) continue;
    const auto is_time_left = sleep(*state_, deadline);
    if (!is_time_left) return std::unexpected(is_time_left.error());
    if (!*is_time_left) return failure(ETIMEDOUT, "no completion by the deadline");
  }
}

int CompletionQueue::request_notify(bool solicited_only) noexcept {
  if (state_->is_dead()) return EIO;
  if (!state_->channel) return EINVAL;
  using Armed = qp::CompletionStream::Armed;
  state_->context->pair_core->arm(state_->stream, solicited_only ? Armed::solicited : Armed::any);
  return 0;
}

void CompletionQueue::ack_events(std::uint32_t count) noexcept {
  if (state_->channel && !state_->event_thread) {
    state_->channel->owners.acknowledge(state_->number_in_channel, count);
  }
}

}  // namespace fairlead::verbs
