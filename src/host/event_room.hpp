#pragma once
// How many events all ports of an application may have reserved. Both sides count: the application knows early that a
// call would be refused, and the daemon trusts only its own count. A port's queue at the engine keeps its size until
// the port closes, so each port counts with the most that it ever had reserved.

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/ensure.hpp"
#include "host/layout.hpp"

namespace fairlead::host {

/// Any thread may call it.
class EventRoom {
 public:
  explicit EventRoom(std::uint32_t most) : most_(most) {}

  void set_most(std::uint32_t most) { most_.store(most, std::memory_order_relaxed); }
  std::uint32_t taken() const { return taken_.load(std::memory_order_relaxed); }
  /// Returns false if there is no room for so many more.
  bool take(std::uint32_t count) {
    std::uint32_t before = taken();
    do {
      if (count > most_.load(std::memory_order_relaxed) - before) return false;
    } while (!taken_.compare_exchange_weak(before, before + count, std::memory_order_relaxed));
    return true;
  }
  void give_back(std::uint32_t count) {
    const std::uint32_t before = taken_.fetch_sub(count, std::memory_order_relaxed);
    ENSURE(before >= count, "{} events are given back, {} were taken", count, before);
  }

 private:
  std::atomic<std::uint32_t> most_, taken_{0};
};

/// The events of one port. One thread at a time.
class EventShare {
 public:
  explicit EventShare(EventRoom& room) : room_(room) {}
  ~EventShare() { room_.give_back(most_reserved_); }
  EventShare(const EventShare&) = delete;
  EventShare& operator=(const EventShare&) = delete;

  /// Returns false if the port or all ports together have no room for so many more.
  bool reserve(std::uint32_t count) {
    if (count > kEventsMax - reserved_) return false;
    const std::uint32_t most = std::max(most_reserved_, reserved_ + count);
    if (most != most_reserved_ && !room_.take(most - most_reserved_)) return false;
    most_reserved_ = most;
    reserved_ += count;
    return true;
  }
  void release(std::uint32_t count) { reserved_ -= count; }
  std::uint32_t reserved() const noexcept { return reserved_; }

 private:
  EventRoom& room_;
  std::uint32_t reserved_ = 0, most_reserved_ = 0;
};

}  // namespace fairlead::host
