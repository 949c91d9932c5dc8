#pragma once
// Cancelled or used-up operations that have not ended by themselves, because a peer still fills, reads or claims their
// memory. Each gets a fixed time and then ends by force. cancel() and close_port() thus end in time, whatever the peer
// does.

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
  /// The earliest, until take_first(). If the operation has ended by itself, the caller may take it before its time.
  const Granted& first() const { return granted_.front(); }
  void take_first() { granted_.pop(); }
  base::Instant next_deadline() const { return is_empty() ? base::kNever : first().until; }

 private:
  base::Duration give_up_after_;
  base::Fifo<Granted> granted_;  // earliest first
};

}  // namespace fairlead::engine
