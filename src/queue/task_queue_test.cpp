#include "queue/task_queue.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "base/slowness_for_tests.hpp"

namespace fairlead::queue {
namespace {

struct Task : TaskLink {
  int number = 0;
};
using Queue = TaskQueue<Task>;

TEST(TaskQueue, GivesWhatIsReadyInOrder) {
  Queue queue;
  Task tasks[3] = {};
  EXPECT_EQ(queue.take(), nullptr);
  for (Task& task : tasks) queue.put(task, true);
  for (Task& task : tasks) {
    ASSERT_EQ(queue.take(), &task);
    queue.finish(task);
  }
  EXPECT_EQ(queue.take(), nullptr);
}

TEST(TaskQueue, ATaskThatIsBeingFilledHoldsUpNobody) {
  Queue queue;
  Task slow, fast;
  queue.put(slow, false);
  queue.put(fast, true);
  ASSERT_EQ(queue.take(), &fast);
  queue.finish(fast);
  EXPECT_EQ(queue.take(), nullptr);
  Queue::complete(slow);
  EXPECT_EQ(queue.take(), &slow);
}

TEST(TaskQueue, TheLastStaysUntilASuccessorIsSeen) {
  Queue queue;
  Task first, second;
  queue.put(first, true);
  ASSERT_EQ(queue.take(), &first);
  queue.finish(first);
  EXPECT_EQ(queue.reclaim(), nullptr);  // the producer will link the next task to it
  queue.put(second, true);
  ASSERT_EQ(queue.take(), &second);
  EXPECT_EQ(queue.reclaim(), &first);
  EXPECT_EQ(queue.reclaim(), nullptr);
}

TEST(TaskQueue, WhatRunsInPlaceIsNotTakenAgainNorReclaimed) {
  Queue queue;
  Task running, next;
  queue.put(running, true);
  ASSERT_EQ(queue.take(), &running);
  queue.put(next, true);
  ASSERT_EQ(queue.take(), &next);
  queue.finish(next);
  EXPECT_EQ(queue.take(), nullptr);
  EXPECT_EQ(queue.reclaim(), nullptr);
  queue.finish(running);
  EXPECT_EQ(queue.reclaim(), &running);
}

// Each task was the last one when it was taken. A producer that waits for tasks to come back must see them.
TEST(TaskQueue, WhatRanInPlaceComesBackThoughNobodyTakes) {
  Queue queue;
  std::vector<Task> tasks(10);
  for (Task& task : tasks) {
    queue.put(task, true);
    ASSERT_EQ(queue.take(), &task);
  }
  std::size_t reclaimed = 0;
  for (Task& task : tasks) {
    queue.finish(task);
    while (queue.reclaim() != nullptr) ++reclaimed;
  }
  EXPECT_EQ(reclaimed, tasks.size() - 1);
}

TEST(TaskQueue, TombstonesDoNotGrowWithABurst) {
  Queue queue;
  std::vector<Task> tasks(100);
  int reclaimed = 0;
  for (Task& task : tasks) {
    queue.put(task, true);
    Task* taken = queue.take();
    ASSERT_EQ(taken, &task);
    queue.finish(*taken);
    while (queue.reclaim() != nullptr) ++reclaimed;
  }
  EXPECT_EQ(reclaimed, 99);
}

TEST(TaskQueue, AsAWayBackItKeepsTheLast) {
  Queue queue;
  Task first, second;
  queue.put(first, true);
  EXPECT_EQ(queue.take_unlinked(), nullptr);
  queue.put(second, true);
  EXPECT_EQ(queue.take_unlinked(), &first);
  EXPECT_EQ(queue.take_unlinked(), nullptr);
}

// Producer, consumer and completer at the same time, over a small pool of tasks.
TEST(TaskQueue, ThreeThreadsLoseAndRepeatNothing) {
  constexpr int kTasks = 8, kMessages = 60'000 / base::kThreadSlowness;
  Queue queue, back, to_complete;
  std::vector<Task> pool(kTasks);
  std::vector<Task> hand_overs(kMessages);  // tasks for the completer: the number is the pool's index
  for (Task& task : pool) back.put(task, true);

  std::thread producer([&] {
    for (int number = 0; number < kMessages;) {
      Task* task = back.take_unlinked();
      if (task == nullptr) {
        std::this_thread::yield();
        continue;
      }
      task->number = number;
      const bool is_ready = number % 3 != 0;
      if (is_ready) {
        queue.put(*task, true);
      } else {
        task->number = -1;
        queue.put(*task, false);
        hand_overs[number].number = static_cast<int>(task - pool.data());
        to_complete.put(hand_overs[number], true);
      }
      ++number;
    }
  });
  std::atomic<bool> is_over{false};
  std::thread completer([&] {
    while (!is_over.load(std::memory_order_acquire)) {
      Task* given = to_complete.take();
      if (given == nullptr) {
        std::this_thread::yield();
        continue;
      }
      Task& task = pool[given->number];
      task.number = static_cast<int>(given - hand_overs.data());
      Queue::complete(task);
      to_complete.finish(*given);
    }
  });
  std::vector<int> seen(kMessages);
  for (int count = 0; count < kMessages;) {
    Task* task = queue.take();
    if (task == nullptr) {
      std::this_thread::yield();
      continue;
    }
    if (task->number >= 0) ++seen[task->number];
    ++count;
    queue.finish(*task);
    while (Task* free = queue.reclaim()) back.put(*free, true);
  }
  producer.join();
  is_over.store(true, std::memory_order_release);
  completer.join();
  for (int number = 0; number < kMessages; ++number) ASSERT_EQ(seen[number], 1) << number;
}

}  // namespace
}  // namespace fairlead::queue
