#pragma once
// Puts and gets that came before their exposure: the target knows the key, and has answered `again`. Each is requested
// again after a short time. Such a time is enough if the target's owner has submitted the exposure, and its engine has
// not read that yet.
//
// A malicious target may answer `again` for ever. So a pass repeats a limited number, and each one ends with `stale`
// after the give-up time.

#include <chrono>
#include <cstdint>

#include "base/fifo.hpp"
#include "base/time.hpp"

namespace fairlead::engine {

class RepeatedTransfers {
 public:
  static constexpr base::Duration kAfter = std::chrono::microseconds(200);
  static constexpr std::uint32_t kInPass = 16;

  /// `name` is of an operation that is not in the queue. Returns false if there is no memory.
  [[nodiscard]] bool add(std::uint64_t name, base::Instant now) {
    if (!waiting_.has_room(1)) return false;
    waiting_.push({now + kAfter, name});
    return true;
  }
  bool is_empty() const { return waiting_.empty(); }
  /// Returns the name of the next one that is due; 0 if there is none. Its operation may have ended.
  std::uint64_t take_due(base::Instant now) {
    if (waiting_.empty() || waiting_.front().at > now) return 0;
    return waiting_.take()->name;
  }

 private:
  struct Waiting {
    base::Instant at;
    std::uint64_t name = 0;
  };

  base::Fifo<Waiting> waiting_;  // earliest first
};

}  // namespace fairlead::engine
