#include "tools/base/interrupt.hpp"

#include <atomic>
#include <csignal>

namespace fairlead::tools {
namespace {

// A signal handler sets it, all threads read it.
std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

}  // namespace

void catch_interrupts() {
  struct sigaction action{};
  action.sa_handler = [](int) { interrupted.store(true, std::memory_order_relaxed); };
  action.sa_flags = SA_RESETHAND;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool is_interrupted() noexcept {
  return interrupted.load(std::memory_order_relaxed);
}

}  // namespace fairlead::tools
