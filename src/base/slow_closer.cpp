#include "base/slow_closer.hpp"

#include <atomic>
#include <deque>
#include <mutex>
#include <utility>

#include "base/thread.hpp"

namespace fairlead::base {
namespace {

std::atomic<unsigned> running{0};

}  // namespace

struct SlowCloser::State {
  std::mutex mutex;
  std::deque<FileDescriptor> left;  // while the thread runs it closes the first one
  bool is_running = false;
};

SlowCloser::SlowCloser() : state_(std::make_shared<State>()) {}

void SlowCloser::close(FileDescriptor descriptor) {
  if (!descriptor.is_open()) return;
  const std::scoped_lock lock(state_->mutex);
  state_->left.push_back(std::move(descriptor));
  if (state_->is_running) return;
  // If no thread can be started, the next close() tries again.
  running.fetch_add(1, std::memory_order_relaxed);
  auto thread = Thread::start([state = state_] { run(*state); });
  state_->is_running = thread.has_value();
  if (thread) {
    thread->detach();
  } else {
    running.fetch_sub(1, std::memory_order_relaxed);
  }
}

void SlowCloser::run(State& state) {
  for (;;) {
    std::unique_lock lock(state.mutex);
    if (state.left.empty()) {
      state.is_running = false;
      running.fetch_sub(1, std::memory_order_relaxed);
      return;
    }
    FileDescriptor first = std::move(state.left.front());
    lock.unlock();
    first.reset();
    lock.lock();
    state.left.pop_front();
  }
}

std::size_t SlowCloser::left() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->left.size();
}

unsigned SlowCloser::threads() noexcept {
  return running.load(std::memory_order_relaxed);
}

}  // namespace fairlead::base
