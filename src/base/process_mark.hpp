#pragma once
// Which process an object belongs to. The child of a fork() has copies of all of its parent's objects, but none of the
// parent's threads; locks may be held there by nobody, names and shared memory are still the parent's. So whoever has
// threads, locks or names keeps a mark, and does nothing where it is inherited: neither joins, nor locks, nor removes.
//
// There is one hook of fork() in the library, here. What has to happen in a fork itself is added to it.

#include <atomic>
#include <cstdint>
#include <memory>

namespace fairlead::base {

class ProcessMark {
 public:
  ProcessMark() noexcept : made_in_(now()) {}
  /// Whether a fork() lies between its making and now: this is a copy in a child.
  bool is_inherited() const noexcept { return made_in_ != now(); }

 private:
  friend struct ForkHook;
  static std::uint32_t now() noexcept { return forks_.load(std::memory_order_relaxed); }
  static constinit std::atomic<std::uint32_t> forks_;  // between the first process and this one

  std::uint32_t made_in_;
};

/// What a fork() calls, each may be null: in the parent before and after, in the child after it. In the child marks
/// made before are inherited already.
struct ForkCalls {
  void (*before)() = nullptr;
  void (*in_parent)() = nullptr;
  void (*in_child)() = nullptr;
};
/// For the rest of the process. At most 8, by the library itself.
void at_fork(const ForkCalls& calls);

/// To the end of the process: for what is inherited, and cannot be taken apart where its threads are missing.
void keep_for_ever(std::shared_ptr<const void> inherited);

/// State of the process as a whole: made at its first use, never destroyed (threads may still use it while the process
/// ends). A child gets a new one; the parent's is left as it was, with its locks.
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
