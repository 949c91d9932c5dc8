#pragma once
// How one direction between two simulated hosts behaves.

#include <chrono>
#include <cstdint>

#include "base/time.hpp"

namespace fairlead::path {

struct SimLink {
  base::Duration delay = std::chrono::microseconds(10);
  /// A datagram that is chosen to overtake or fall behind waits up to this much longer.
  base::Duration reorder_delay = std::chrono::microseconds(100);
  /// Probabilities of each datagram, 0 to 1. Loss of 1 is a partition.
  double loss = 0;
  double duplication = 0;
  double reordering = 0;
  double corruption = 0;  // one bit flipped
  /// 0 is infinitely fast.
  std::uint64_t bytes_per_second = 0;
  /// What may wait for a link with a rate; more is lost, or refused at the sender if `is_senders_own`.
  std::uint64_t queue_bytes_max = 1u << 20;
  /// The queue is the sending host's, which tells its path to come later, rather than a router's, which drops.
  bool is_senders_own = false;
  /// Largest UDP payload (the link's MTU less its headers); more is refused at the sender as too big.
  std::uint32_t datagram_size_max = 1472;
};

/// What the network did to datagrams, all links together.
struct SimCounters {
  std::uint64_t taken = 0, delivered = 0;
  std::uint64_t lost = 0, duplicated = 0, reordered = 0, corrupted = 0;
  std::uint64_t queue_overran = 0;     // the link's queue was full
  std::uint64_t receiver_overran = 0;  // the receiver's buffer was full
  std::uint64_t nobody_there = 0;      // no path at the address (any more)
};

}  // namespace fairlead::path
