#pragma once
// One thread of a context that waits for completion events and calls those who want to be called: it is the consumer of
// a channel like any program's. It exists while a queue with a callback does.

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
  /// The context's, made if there is none.
  static Result<std::shared_ptr<EventThread>> of(const std::shared_ptr<ContextState>& context);

  EventThread(std::shared_ptr<ChannelState> channel, base::FileDescriptor stop);
  ~EventThread();

  const std::shared_ptr<ChannelState>& channel() const { return channel_; }
  /// In a callback a queue cannot wait for the callback's end.
  bool is_this_thread() const { return thread_.is_this(); }

 private:
  void run();

  std::shared_ptr<ChannelState> channel_;
  base::FileDescriptor stop_;
  base::Thread thread_;
};

}  // namespace fairlead::verbs
