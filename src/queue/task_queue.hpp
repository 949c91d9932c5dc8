#pragma once
// A task queue with a firewall element: one producer, one consumer, no lock and no compare-and-swap. Third parties make
// tasks ready, in any order (AMLAPI's bundle task queue; docs/am.md).
//
// Model. Tasks form a chain linked by `next`, which begins with an anchor that is never taken. The only word that both
// sides could write is the `next` of the last task. So the consumer never unlinks the last task: live or executed, it
// is the firewall. What comes after it belongs to the producer, what comes before it to the consumer. An executed last
// task stays as a tombstone (at most one) until it has a successor.
//
// Memory orders (tests/models/task_queue.pml fails without any of them):
//   next   null -> successor once, by the producer, while the task is last: release. A reader that follows the link
//          (acquire) sees the next task and what it carries. The consumer stores a `next` only after it has read it
//          non-null, that is after the producer's last store to it. Only the consumer reads that store: relaxed.
//   state  filling -> ready once, by the thread that completes the task: release, read by the consumer with acquire,
//          so that it sees the task's data. After that only the consumer writes it: relaxed.
// The consumer frees a task only after it has read its `next` as non-null, so never the one that the producer will link
// to next. The third party does not touch a task after complete(); the consumer frees no task that is not ready.
//
// Threads: put() by one producer at a time; take(), take_unlinked(), finish() and reclaim() by one consumer at a time.
// A lock that passes a role to another thread orders the hand-over. complete() by any thread, once per task.

#include <atomic>
#include <concepts>
#include <cstdint>

#include "queue/layout.hpp"

namespace fairlead::queue {

/// Base class of queued tasks; a task is in one queue at most.
struct TaskLink {
  enum class State : std::uint8_t {
    filling,    // must not be taken yet
    ready,      // may be taken
    running,    // taken and unlinked
    in_place,   // taken while it was the last task: still linked
    tombstone,  // executed, but still linked
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

  /// Makes a task ready that was put as filling; everything it carries is in place.
  static void complete(Task& task) noexcept { task.state.store(State::ready, std::memory_order_release); }

  /// [consumer] Takes the first ready task, wherever it is; null if there is none. finish() has to follow. Passes over
  /// tasks that are being filled.
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

  /// [consumer] Takes the first task unless it is the last; needs no finish(). Only for queues whose tasks are all
  /// ready.
  Task* take_unlinked() noexcept {
    TaskLink* task = anchor_.next.load(std::memory_order_acquire);
    TaskLink* after = task != nullptr ? task->next.load(std::memory_order_acquire) : nullptr;
    if (after == nullptr) return nullptr;
    anchor_.next.store(after, std::memory_order_relaxed);
    return static_cast<Task*>(task);
  }

  /// [consumer] Ends a taken task. reclaim() returns it at once, or when it is not the last any more.
  void finish(Task& task) noexcept {
    if (task.state.load(std::memory_order_relaxed) == State::running) {
      keep(task);
    } else {
      task.state.store(State::tombstone, std::memory_order_relaxed);
      sweep();
    }
  }

  /// [consumer] Returns the next task that has left the queue for good and may be reused; null if there is none.
  Task* reclaim() noexcept {
    TaskLink* task = kept_;
    if (task != nullptr) kept_ = task->next.load(std::memory_order_relaxed);
    return static_cast<Task*>(task);
  }

 private:
  using State = TaskLink::State;

  // Unlinks tombstones that have a successor by now. take() does that too, but the consumer may need its tasks back
  // before the next take().
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

  alignas(kLinePairBytes) TaskLink* tail_ = &anchor_;  // owned by the producer
  alignas(kLinePairBytes) TaskLink anchor_;            // owned by the consumer, once it is not the last
  TaskLink* kept_ = nullptr;                           // owned by the consumer
};

}  // namespace fairlead::queue
