#pragma once
// The thread of a context that waits for completion events and runs the callbacks of completion queues. It consumes a
// completion channel as an application would. It exists while a queue with a callback does.

#include <functional>
#include <memory>

#include <fairlead/error.hpp>

#include "base/file_descriptor.hpp"
#include "base/thread.hpp"
#include "verbs/context_state.hpp"

namespace fairlead::verbs {

struct ChannelState;

class EventThread {
 public:
  /// Returns the context's event thread, and starts it if there is none.
  static Result<std::shared_ptr<EventThread>> of(const std::shared_ptr<ContextState>& context);

  EventThread(std::shared_ptr<ChannelState> channel, base::FileDescriptor stop);
  ~EventThread();

  const std::shared_ptr<ChannelState>& channel() const { return channel_; }
  /// Returns whether the caller is in a callback: there, destroying a queue must not wait for that callback to end.
  bool is_this_thread() const { return thread_.is_this(); }

 private:
  void run();

  std::shared_ptr<ChannelState> channel_;
  base::FileDescriptor stop_;
  base::Thread thread_;
};

}  // namespace fairlead::verbs
