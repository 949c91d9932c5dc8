#include "base/process_mark.hpp"

#include <pthread.h>

#include <array>
#include <mutex>
#include <utility>
#include <vector>

#include "base/ensure.hpp"

namespace fairlead::base {

constinit std::atomic<std::uint32_t> ProcessMark::forks_{0};

namespace {

struct AllCalls {
  static constexpr std::size_t kMost = 8;
  std::array<ForkCalls, kMost> calls;
  std::atomic<std::size_t> count{0};  // stored with release when a handler is added
  std::mutex adding;
};
constinit AllCalls all_calls;

}  // namespace

// As in pthread_atfork(): before the fork the last handler runs first, after it the first one.
struct ForkHook {
  static void before() {
    for (std::size_t i = all_calls.count.load(std::memory_order_acquire); i > 0; --i) {
      if (const auto call = all_calls.calls[i - 1].before) call();
    }
  }
  static void in_parent() {
    for (std::size_t i = 0; i < all_calls.count.load(std::memory_order_acquire); ++i) {
      if (const auto call = all_calls.calls[i].in_parent) call();
    }
  }
  static void in_child() {
    ProcessMark::forks_.fetch_add(1, std::memory_order_relaxed);
    for (std::size_t i = 0; i < all_calls.count.load(std::memory_order_acquire); ++i) {
      if (const auto call = all_calls.calls[i].in_child) call();
    }
  }
};

namespace {
const int is_hooked = ::pthread_atfork(&ForkHook::before, &ForkHook::in_parent, &ForkHook::in_child);
}  // namespace

void at_fork(const ForkCalls& calls) {
  const std::scoped_lock lock(all_calls.adding);
  const std::size_t count = all_calls.count.load(std::memory_order_relaxed);
  ENSURE(is_hooked == 0 && count < AllCalls::kMost, "{} calls at fork already", count);
  all_calls.calls[count] = calls;
  all_calls.count.store(count + 1, std::memory_order_release);
}

void keep_for_ever(std::shared_ptr<const void> inherited) {
  struct Kept {
    std::mutex mutex;
    std::vector<std::shared_ptr<const void>> all;
  };
  static constinit OfProcess<Kept> kept;
  const std::scoped_lock lock(kept->mutex);
  kept->all.push_back(std::move(inherited));
}

}  // namespace fairlead::base
