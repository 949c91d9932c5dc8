#pragma once
// The state behind completion channels and completion queues.

#include <fairlead/verbs/completion_queue.hpp>

#include "base/short_lock.hpp"
#include "verbs/context_state.hpp"
#include "verbs/event_thread.hpp"

namespace fairlead::verbs {

struct ChannelState {
  ChannelState(std::shared_ptr<ContextState> owner, qp::NoticeStream* its_stream)
      : context(std::move(owner)), stream(its_stream) {}
  ~ChannelState() {
    if (!context->is_dead()) context->pair_core->close_notices(stream);
    context->channels.give();
  }
  ChannelState(const ChannelState&) = delete;
  ChannelState& operator=(const ChannelState&) = delete;

  std::shared_ptr<ContextState> context;
  qp::NoticeStream* stream;
  EventOwners owners;
  UseCount queues;
};

struct QueueState {
  ~QueueState() {
    if (!context) return;  // creation failed for lack of memory
    // From here on, the callback is not called any more.
    if (event_thread && !is_dead()) channel->owners.remove(number_in_channel, *channel->stream);
    if (stream != nullptr && !context->is_dead()) context->pair_core->close_completions(stream);
    if (channel) channel->queues.drop();
    context->queues.give();
  }

  bool is_dead() const { return context->is_dead(); }
  /// Unregisters the queue as an owner of notices: from now on they are dropped.
  void drop_names() {
    if (channel) channel->owners.remove(number_in_channel, *channel->stream);
    context->event_owners.remove(number_in_context, *context->events);
  }

  std::shared_ptr<ContextState> context;
  std::shared_ptr<ChannelState> channel;
  qp::CompletionStream* stream = nullptr;
  std::shared_ptr<ChannelState> sleep;  // of wait(), created when it first sleeps
  std::uint64_t number_in_channel = 0, number_in_context = 0;
  std::function<void()> on_event;  // called on event_thread
  std::shared_ptr<EventThread> event_thread;
  base::ShortLock consumer;  // admits one poller at a time
  std::atomic<std::uint32_t> capacity{0};
  UseCount users;  // queue pairs, counted once per direction
};

}  // namespace fairlead::verbs
