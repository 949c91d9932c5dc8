#include "base/slow_closer.hpp"

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <deque>
#include <mutex>
#include <utility>

namespace fairlead::base {
namespace {

std::atomic<unsigned> running{0};

/// A detached thread without signals; false if there is none to be had.
bool start_thread(void* (*body)(void*), void* argument) {
  constexpr std::size_t kStack = std::size_t{64} * 1024;
  pthread_attr_t attributes;
  if (::pthread_attr_init(&attributes) != 0) return false;
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  ::pthread_attr_setstacksize(&attributes, kStack);
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread{};
  const bool is_started = ::pthread_create(&thread, &attributes, body, argument) == 0;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::pthread_attr_destroy(&attributes);
  return is_started;
}

}  // namespace

struct SlowCloser::State {
  std::mutex mutex;
  std::deque<FileDescriptor> left;  // the first one is being closed if the thread runs
  bool is_running = false;
};

SlowCloser::SlowCloser() : state_(std::make_shared<State>()) {}

void SlowCloser::close(FileDescriptor descriptor) {
  if (!descriptor.is_open()) return;
  const std::scoped_lock lock(state_->mutex);
  state_->left.push_back(std::move(descriptor));
  if (state_->is_running) return;
  // If there is no thread to be had, the next one to be closed tries again.
  auto shared = std::make_unique<std::shared_ptr<State>>(state_);
  running.fetch_add(1, std::memory_order_relaxed);
  state_->is_running = start_thread(&run, shared.get());
  if (state_->is_running) {
    shared.release();  // the thread's now
  } else {
    running.fetch_sub(1, std::memory_order_relaxed);
  }
}

void* SlowCloser::run(void* shared) {
  const std::unique_ptr<std::shared_ptr<State>> owned(static_cast<std::shared_ptr<State>*>(shared));
  State& state = **owned;
  for (;;) {
    std::unique_lock lock(state.mutex);
    if (state.left.empty()) {
      state.is_running = false;
      running.fetch_sub(1, std::memory_order_relaxed);
      return nullptr;
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
