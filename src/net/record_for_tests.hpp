#pragma once
// Records the buffer events of a test.

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include <fairlead/net.hpp>

namespace fairlead::net {

/// Copies of the events, in delivery order.
class Record {
 public:
  struct Entry {
    QueueKind queue;
    Status status;
    bool is_final;
    std::uint64_t length;
    std::uint64_t offset;
    std::string sender;
    bool was_queued;  // is_queued() during the callback
  };

  BufferCallback callback() {
    return [this](const BufferEvent& event) {
      const std::scoped_lock lock(mutex_);
      entries_.push_back({event.queue, event.status, event.is_final, event.length, event.offset,
                          std::string(event.sender.address()), event.buffer.is_queued()});
      changed_.notify_all();
    };
  }
  /// Blocks until `count` events have come.
  std::vector<Entry> wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return entries_.size() >= count; });
    return entries_;
  }
  std::vector<Entry> entries() const {
    const std::scoped_lock lock(mutex_);
    return entries_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Entry> entries_;
};

}  // namespace fairlead::net
