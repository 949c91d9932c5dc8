#include "host/pair_watcher.hpp"

#include <poll.h>
#include <sys/eventfd.h>

#include <array>
#include <thread>
#include <utility>

#include "base/event_descriptor.hpp"
#include "base/process_mark.hpp"
#include "base/process_memory.hpp"
#include "base/roll.hpp"
#include "base/slow_closer.hpp"

namespace fairlead::host {
namespace {

constexpr int kLooksAfterJoin = 1000;

constinit base::OfProcess<base::Roll<PairWatcher>> watchers;

}  // namespace

Result<std::unique_ptr<PairWatcher>> PairWatcher::start(int descriptor, Look look) {
  Signals signals;
  for (base::FileDescriptor* signal : {&signals.stop, &signals.stopped, &signals.go}) {
    auto made = base::open_event_descriptor("a watcher of queue pairs", 0);
    if (!made) return std::unexpected(std::move(made.error()));
    *signal = std::move(*made);
  }
  std::unique_ptr<PairWatcher> watcher(new PairWatcher(descriptor, std::move(look), std::move(signals)));
  auto thread = base::Thread::start([its = watcher.get()] { its->run(); });
  if (!thread) return std::unexpected(std::move(thread.error()));
  watcher->thread_ = std::move(*thread);
  watchers->enter(*watcher);
  return watcher;
}

PairWatcher::~PairWatcher() {
  watchers->leave(*this);
  if (!thread_.is_joinable()) return;
  stop();
  is_ending_.store(true, std::memory_order_release);
  go_on();
  const unsigned before = base::thread_count();
  thread_.join();
  // The kernel counts the thread a moment longer. The next registration of memory must not see it.
  for (int i = 0; i < kLooksAfterJoin && base::thread_count() >= before; ++i) std::this_thread::yield();
}

void PairWatcher::stop() const {
  eventfd_t ignored = 0;
  ::eventfd_write(signals_.stop.get(), 1);
  ::eventfd_read(signals_.stopped.get(), &ignored);
}

void PairWatcher::go_on() const {
  ::eventfd_write(signals_.go.get(), 1);
}

/// Runs on the thread. Returns false if the thread must end.
bool PairWatcher::stand_still() const {
  eventfd_t ignored = 0;
  ::eventfd_read(signals_.stop.get(), &ignored);
  ::eventfd_write(signals_.stopped.get(), 1);
  ::eventfd_read(signals_.go.get(), &ignored);
  return !is_ending_.load(std::memory_order_acquire);
}

void PairWatcher::run() {
  std::array<pollfd, 2> waits{{{signals_.stop.get(), POLLIN, 0}, {descriptor_, POLLIN, 0}}};
  for (;;) {
    if (!look_()) waits[1].fd = -1;
    ::poll(waits.data(), waits.size(), -1);
    if ((waits[0].revents & POLLIN) != 0 && !stand_still()) return;
  }
}

AllWatchersStopped::AllWatchersStopped() {
  watchers->lock();
  for (const PairWatcher* watcher : watchers->locked_all()) watcher->stop();
}

AllWatchersStopped::~AllWatchersStopped() {
  for (const PairWatcher* watcher : watchers->locked_all()) watcher->go_on();
  watchers->unlock();
}

bool AllWatchersStopped::is_alone() const {
  return base::thread_count() == 1 + watchers->locked_all().size() + base::SlowCloser::threads();
}

}  // namespace fairlead::host
