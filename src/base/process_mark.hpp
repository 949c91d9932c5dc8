#pragma once
// Marks the process that an object belongs to. The child of a fork() has copies of all its parent's objects, but none
// of its threads. Locks may be held there by no thread, and names and shared memory still belong to the parent. So an
// object with threads, locks or names keeps a mark. If the mark is inherited, it neither joins, nor locks, nor removes
// anything.
//
// The library has one fork hook, here. Other modules add their handlers to it.

#include <atomic>
#include <cstdint>
#include <memory>

namespace fairlead::base {

class ProcessMark {
 public:
  ProcessMark() noexcept : made_in_(now()) {}
  /// Returns whether this is a copy in a child: a fork() happened since it was made.
  bool is_inherited() const noexcept { return made_in_ != now(); }

 private:
  friend struct ForkHook;
  static std::uint32_t now() noexcept { return forks_.load(std::memory_order_relaxed); }
  static constinit std::atomic<std::uint32_t> forks_;  // forks between the first process and this one

  std::uint32_t made_in_;
};

/// Handlers of fork(), each may be null: in the parent before and after it, in the child after it. In the child,
/// earlier marks are inherited already.
struct ForkCalls {
  void (*before)() = nullptr;
  void (*in_parent)() = nullptr;
  void (*in_child)() = nullptr;
};
/// Registers handlers for the rest of the process; at most 8, only by the library itself.
void at_fork(const ForkCalls& calls);

/// Keeps an inherited object until the process ends, because it cannot be destroyed without its threads.
void keep_for_ever(std::shared_ptr<const void> inherited);

/// Process-wide state, made on first use and never destroyed, since threads may use it while the process ends. A child
/// gets a new one; the parent's copy stays as it is, with its locks.
template <typename State>
class OfProcess {
 public:
  State& operator*() {
    Made* made = made_.load(std::memory_order_acquire);
    while (made == nullptr || made->mark.is_inherited()) {
      auto* fresh = new Made{.before = made};
      if (made_.compare_exchange_strong(made, fresh, std::memory_order_acq_rel)) return fresh->state;
      delete fresh;
    }
    return made->state;
  }
  State* operator->() { return &**this; }

 private:
  struct Made {
    Made* before;
    ProcessMark mark{};
    State state{};
  };
  std::atomic<Made*> made_{nullptr};
};

}  // namespace fairlead::base
