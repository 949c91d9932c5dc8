#pragma once
// The task queue with the firewall element: one producer, one consumer, no lock and no compare-and-swap, and tasks that
// become ready in any order by a third party (AMLAPI's bundle task queue; docs/am.md).
//
// Model. A chain of tasks linked by `next`, begun by an anchor that is never taken. The only word that both sides could
// write is the `next` of the last task, so the rule is: the consumer never unlinks the last one. Live or executed, it
// is the firewall: beyond it everything is the producer's, before it everything is the consumer's. An executed last
// task stays behind as a tombstone (at most one) until a successor is seen.
//
// Why the orders suffice (tests/models/task_queue.pml finds a failure when any of them is left out):
//   next   null -> successor once, by the producer, while the task is last: release, so that whoever follows the link
//          (acquire) sees the task behind it and what it carries. The consumer stores a `next` only after it has read
//          it non-null, that is after the producer's last store to it; only the consumer reads such a store: relaxed.
//   state  filling -> ready once, by whoever completes the task: release, read by the consumer with acquire, so that it
//          sees what was placed. From ready on only the consumer writes it: relaxed.
// The consumer frees a task only after reading its `next` non-null, hence never the one that the producer will link to
// next. The third party touches a task no more after complete(); the consumer frees none that is not ready.
//
// Threads: put() by one producer at a time, take(), take_unlinked(), finish() and reclaim() by one consumer at a time;
// a lock that hands a role to another thread orders the hand-over. complete() by anybody, once per task.

#include <atomic>
#include <concepts>
#include <cstdint>

#include "queue/layout.hpp"

namespace fairlead::queue {

/// Base of whatever is queued; a task is in one queue at most.
struct TaskLink {
  enum class State : std::uint8_t {
    filling,    // not to be taken yet
    ready,      //
    running,    // taken, and unlinked
    in_place,   // taken while it was the last: still linked
    tombstone,  // executed, still linked
  };
  std::atomic<TaskLink*> next{nullptr};
  std::atomic<State> state{State::filling};
};

template <std::derived_from<TaskLink> Task>
class TaskQueue {
 public:
  TaskQueue() = default;
  TaskQueue(const TaskQueue&) = delete;
  TaskQueue& operator=(const TaskQueue&) = delete;

  /// [producer]
  void put(Task& task, bool is_ready) noexcept {
    task.next.store(nullptr, std::memory_order_relaxed);
    task.state.store(is_ready ? State::ready : State::filling, std::memory_order_relaxed);
    tail_->next.store(&task, std::memory_order_release);
    tail_ = &task;
  }

  /// Of a task that was put filling: everything it carries is there.
  static void complete(Task& task) noexcept { task.state.store(State::ready, std::memory_order_release); }

  /// [consumer] The first ready task anywhere, or null; finish() follows. Walks over tasks that are being filled.
  Task* take() noexcept {
    TaskLink* before = &anchor_;
    TaskLink* task = before->next.load(std::memory_order_acquire);
    while (task != nullptr) {
      const State state = task->state.load(std::memory_order_acquire);
      TaskLink* after = task->next.load(std::memory_order_acquire);
      if (state == State::ready) {
        if (after != nullptr) before->next.store(after, std::memory_order_relaxed);
        task->state.store(after != nullptr ? State::running : State::in_place, std::memory_order_relaxed);
        return static_cast<Task*>(task);
      }
      if (state == State::tombstone && after != nullptr) {
        before->next.store(after, std::memory_order_relaxed);
        keep(*task);
      } else {
        before = task;
      }
      task = after;
    }
    return nullptr;
  }

  /// [consumer] The first task, if it is not the last (in a queue of tasks that are all ready): it needs no finish().
  Task* take_unlinked() noexcept {
    TaskLink* task = anchor_.next.load(std::memory_order_acquire);
    TaskLink* after = task != nullptr ? task->next.load(std::memory_order_acquire) : nullptr;
    if (after == nullptr) return nullptr;
    anchor_.next.store(after, std::memory_order_relaxed);
    return static_cast<Task*>(task);
  }

  /// [consumer] After the execution of a taken task: reclaim() returns it now, or once it is not the last any more.
  void finish(Task& task) noexcept {
    if (task.state.load(std::memory_order_relaxed) == State::running) {
      keep(task);
    } else {
      task.state.store(State::tombstone, std::memory_order_relaxed);
      sweep();
    }
  }

  /// [consumer] Next task that is out of the queue for good and may be used again.
  Task* reclaim() noexcept {
    TaskLink* task = kept_;
    if (task != nullptr) kept_ = task->next.load(std::memory_order_relaxed);
    return static_cast<Task*>(task);
  }

 private:
  using State = TaskLink::State;

  // Unlinks what was executed in place and has a successor by now. A take() would, too, but may not come before some
  // are back.
  void sweep() noexcept {
    TaskLink* before = &anchor_;
    TaskLink* task = before->next.load(std::memory_order_acquire);
    while (task != nullptr) {
      TaskLink* after = task->next.load(std::memory_order_acquire);
      if (after != nullptr && task->state.load(std::memory_order_acquire) == State::tombstone) {
        before->next.store(after, std::memory_order_relaxed);
        keep(*task);
      } else {
        before = task;
      }
      task = after;
    }
  }

  void keep(TaskLink& task) noexcept {
    task.next.store(kept_, std::memory_order_relaxed);
    kept_ = &task;
  }

  alignas(kLinePairBytes) TaskLink* tail_ = &anchor_;  // the producer's
  alignas(kLinePairBytes) TaskLink anchor_;            // the consumer's, once it is not the last
  TaskLink* kept_ = nullptr;                           // the consumer's
};

}  // namespace fairlead::queue
