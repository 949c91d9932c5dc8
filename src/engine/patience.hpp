#pragma once
// What was cancelled and has not ended by itself, because a peer has a part in it: a message that it has begun, or an
// acknowledgement or an answer that it owes. It gets the give-up time, and then ends by force. So cancel() and
// close_port() end in time whatever the peer does.

#include <cstdint>

#include "base/fifo.hpp"
#include "base/time.hpp"

namespace fairlead::engine {

class Patience {
 public:
  explicit Patience(base::Duration give_up_after) : give_up_after_(give_up_after) {}

  struct Granted {
    base::Instant until;
    std::uint64_t name = 0;  // of an operation
  };

  void grant(std::uint64_t name, base::Instant now) { granted_.push({now + give_up_after_, name}); }
  bool is_empty() const { return granted_.empty(); }
  /// The earliest, until take_first(). It may have ended by itself: then it need not wait for its time.
  const Granted& first() const { return granted_.front(); }
  void take_first() { granted_.pop(); }
  base::Instant next_deadline() const { return is_empty() ? base::kNever : first().until; }

 private:
  base::Duration give_up_after_;
  base::Fifo<Granted> granted_;  // the earliest first
};

}  // namespace fairlead::engine
