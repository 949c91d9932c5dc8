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
  /// A loss takes this many datagrams in a row, if they follow within the time; `loss` stays the share of all.
  std::uint32_t loss_burst = 1;
  base::Duration loss_burst_time = std::chrono::milliseconds(10);
  /// Each so-many-th datagram is lost besides; 0: none.
  std::uint32_t loss_every = 0;
  /// A duplicate follows its original within this; 0: within reorder_delay.
  base::Duration duplicate_delay{};
  /// 0 is infinitely fast.
  std::uint64_t bytes_per_second = 0;
  /// What may wait for a link with a rate; more is lost, or refused at the sender if `is_senders_own`.
  std::uint64_t queue_bytes_max = 1u << 20;
  /// The queue is the sending host's, which tells its path to come later, rather than a router's, which drops.
  bool is_senders_own = false;
  /// Largest UDP payload (the link's MTU less its headers); more is refused at the sender as too big.
  std::uint32_t datagram_size_max = 1472;
  /// The sending host's firewall lets nothing out this way, and tells the sender.
  bool is_filtered = false;
  /// A router on the way drops what is larger and tells nobody; 0: there is none.
  std::uint32_t black_hole_above = 0;
};

/// The last link to a host, which all its senders share: a switch's port, with a queue that drops at its end.
struct SimDownlink {
  std::uint64_t bytes_per_second = 0;  // 0 is infinitely fast
  std::uint64_t queue_bytes_max = 1u << 20;
};

/// What the network did to datagrams, all links together.
struct SimCounters {
  std::uint64_t taken = 0, delivered = 0;
  std::uint64_t lost = 0, duplicated = 0, reordered = 0, corrupted = 0;
  std::uint64_t queue_overran = 0;  // the link's queue was full
  std::uint64_t too_big_on_the_way = 0;
  std::uint64_t receiver_overran = 0;  // the receiver's buffer was full
  std::uint64_t nobody_there = 0;      // no path at the address (any more)
};

}  // namespace fairlead::path
