#pragma once
// Facts for an owner above, told through a descriptor: completion channels and asynchronous events. A bounded event
// queue, and a semaphore that counts what waits in it, so that each notice is a fresh edge of readiness.
//
// Produced under the engine's lock; consumed by one thread at a time.

#include <atomic>
#include <cstdint>

#include <fairlead/error.hpp>

#include "base/file_descriptor.hpp"
#include "queue/event_queue.hpp"

namespace fairlead::qp {

struct Notice {
  std::uint32_t kind = 0;    // verbs::AsyncEventType, or kCompletion
  std::uint64_t cookie = 0;  // the owner's word of the object

  static constexpr std::uint32_t kCompletion = ~0U;
};

class NoticeStream {
 public:
  static constexpr std::uint32_t kCapacity = 4096;

  explicit NoticeStream(base::FileDescriptor semaphore) : semaphore_(std::move(semaphore)) {}

  /// False if it is full: the owner has not fetched the last kCapacity.
  bool produce(const Notice& notice);
  /// The next one; null if there is none. The semaphore has been taken by reading the descriptor.
  const Notice* consume() { return notices_.consume(); }
  int descriptor() const { return semaphore_.get(); }
  /// Notices that found no room.
  std::uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }

 private:
  base::FileDescriptor semaphore_;
  queue::EventQueue<Notice> notices_{kCapacity};
  std::atomic<std::uint64_t> lost_{0};
};

}  // namespace fairlead::qp
