#pragma once
// Notices for an API, announced through a descriptor: completion channels and asynchronous events. It is a bounded
// event queue with a semaphore (eventfd) that counts the queued notices. So each notice makes the descriptor ready
// again (a new edge for epoll).
//
// Notices are produced under the engine's lock, and consumed by one thread at a time.

#include <atomic>
#include <cstdint>

#include <fairlead/error.hpp>

#include "base/file_descriptor.hpp"
#include "queue/event_queue.hpp"

namespace fairlead::qp {

struct Notice {
  std::uint32_t kind = 0;    // verbs::AsyncEventType, or kCompletion
  std::uint64_t cookie = 0;  // the owner's word for the object

  static constexpr std::uint32_t kCompletion = ~0U;
};

class NoticeStream {
 public:
  static constexpr std::uint32_t kCapacity = 4096;

  explicit NoticeStream(base::FileDescriptor semaphore) : semaphore_(std::move(semaphore)) {}

  /// Returns false if the queue is full: the consumer has not taken the last kCapacity notices.
  bool produce(const Notice& notice);
  /// Returns the next notice, or null. The consumer reads the descriptor before, which decrements the semaphore, or
  /// calls take_back() after it.
  const Notice* consume() { return notices_.consume(); }
  /// Decrements the semaphore without blocking, whatever the descriptor's flags. Returns false if it is zero.
  bool take_back();
  /// Returns whether consume() would return one.
  bool has_any() const { return !notices_.is_empty(); }
  int descriptor() const { return semaphore_.get(); }
  /// Number of notices that were dropped because the queue was full.
  std::uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }

 private:
  base::FileDescriptor semaphore_;
  queue::EventQueue<Notice> notices_{kCapacity};
  std::atomic<std::uint64_t> lost_{0};
};

}  // namespace fairlead::qp
