#pragma once
// Puts and gets that came before their exposure: the target knows the key, and has answered `again`. Each is requested
// again after a short time. Such a time is enough if the target's owner has submitted the exposure, and its engine has
// not read that yet.
//
// A malicious target may answer `again` for ever, and a put sends all its bytes each time. So the delay doubles with
// each repetition, a pass repeats a limited number, and a transfer ends with `stale` after the give-up time.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>

#include "base/fifo.hpp"
#include "base/time.hpp"

namespace fairlead::engine {

class RepeatedTransfers {
 public:
  static constexpr base::Duration kAfter = std::chrono::microseconds(200);  // the first delay
  static constexpr std::uint32_t kDelays = 13;                              // the last one is 0.8 s
  static constexpr std::uint32_t kInPass = 16;
  static constexpr std::uint32_t kLooksInPass = 1024;  // those that have ended meanwhile cost only a look

  static constexpr base::Duration delay(std::uint32_t repeats) {
    return kAfter * (1 << std::min(repeats, kDelays - 1));
  }

  /// `name` is of an operation that is not in a queue, and that was repeated `repeats` times. Returns false if there is
  /// no memory.
  [[nodiscard]] bool add(std::uint64_t name, std::uint32_t repeats, base::Instant now) {
    base::Fifo<Waiting>& queue = waiting_[std::min(repeats, kDelays - 1)];
    if (!queue.has_room(1)) return false;
    queue.push({now + delay(repeats), name});
    return true;
  }
  bool is_empty() const {
    return std::ranges::all_of(waiting_, [](const base::Fifo<Waiting>& queue) { return queue.empty(); });
  }
  /// Returns the name of one that is due; 0 if there is none. Its operation may have ended.
  std::uint64_t take_due(base::Instant now) {
    for (base::Fifo<Waiting>& queue : waiting_)
      if (!queue.empty() && queue.front().at <= now) return queue.take()->name;
    return 0;
  }

 private:
  struct Waiting {
    base::Instant at;
    std::uint64_t name = 0;
  };

  std::array<base::Fifo<Waiting>, kDelays> waiting_;  // by delay; each has the earliest first
};

}  // namespace fairlead::engine
