#include "verbs/event_thread.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/event_descriptor.hpp"
#include "verbs/queue_state.hpp"

namespace fairlead::verbs {

Result<std::shared_ptr<EventThread>> EventThread::of(const std::shared_ptr<ContextState>& context) {
  const std::scoped_lock lock(context->event_thread_mutex);
  if (auto running = context->event_thread.lock()) return running;
  auto stop = base::open_event_descriptor("the thread of completion callbacks", 0);
  if (!stop) return std::unexpected(std::move(stop.error()));
  if (!context->channels.take()) return failure(ENOMEM, "all completion channels of the context are in use");
  auto stream = context->pair_core->open_notices();
  if (!stream) {
    context->channels.give();
    return std::unexpected(std::move(stream.error()));
  }
  // A notice of a destroyed queue must not make the thread block.
  ::fcntl((*stream)->descriptor(), F_SETFL, O_NONBLOCK);
  auto channel = std::make_shared<ChannelState>(context, *stream);
  auto made = std::make_shared<EventThread>(std::move(channel), std::move(*stop));
  auto thread = base::Thread::start([its = made.get()] { its->run(); });
  if (!thread) return failure(ENOMEM, "completion callbacks: " + thread.error().message);
  made->thread_ = std::move(*thread);
  context->event_thread = made;
  return made;
}

EventThread::EventThread(std::shared_ptr<ChannelState> channel, base::FileDescriptor stop)
    : channel_(std::move(channel)), stop_(std::move(stop)) {}

EventThread::~EventThread() {
  if (!thread_.is_joinable()) return;  // in the child of a fork: the event fd is shared with the parent's thread
  if (::eventfd_write(stop_.get(), 1) == 0) thread_.join();  // an event fd always accepts a 1
}

void EventThread::run() {
  std::array<pollfd, 2> waits{{{channel_->stream->descriptor(), POLLIN, 0}, {stop_.get(), POLLIN, 0}}};
  for (;;) {
    if (::poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) return;
    if ((waits[1].revents & POLLIN) != 0) return;
    if ((waits[0].revents & POLLIN) == 0) continue;
    std::uint64_t callback = 0;
    const auto notice = channel_->owners.get(*channel_->stream, callback);
    if (!notice) continue;
    // The callback stays valid until the event is acknowledged: EventOwners::remove() waits for that.
    (*reinterpret_cast<const std::function<void()>*>(callback))();
    channel_->owners.acknowledge(notice->cookie, 1);
  }
}

}  // namespace fairlead::verbs
