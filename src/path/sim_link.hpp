#pragma once
// Properties of one direction between two simulated hosts.

#include <chrono>
#include <cstdint>

#include "base/time.hpp"

namespace fairlead::path {

struct SimLink {
  base::Duration delay = std::chrono::microseconds(10);
  /// A datagram drawn for reordering waits up to this much longer.
  base::Duration reorder_delay = std::chrono::microseconds(100);
  /// Probabilities for each datagram, 0 to 1. A loss of 1 is a partition.
  double loss = 0;
  double duplication = 0;
  double reordering = 0;
  double corruption = 0;  // one bit flipped
  /// A loss takes this many datagrams in a row if they follow within loss_burst_time; `loss` stays the share of all.
  std::uint32_t loss_burst = 1;
  base::Duration loss_burst_time = std::chrono::milliseconds(10);
  /// In addition, every n-th datagram is lost; 0: none.
  std::uint32_t loss_every = 0;
  /// A duplicate follows its original within this time; 0: within reorder_delay.
  base::Duration duplicate_delay{};
  /// 0: infinitely fast.
  std::uint64_t bytes_per_second = 0;
  /// Bytes that may wait for a link with a rate. More is lost, or refused at the sender if `is_senders_own`.
  std::uint64_t queue_bytes_max = 1u << 20;
  /// True: the queue belongs to the sending host, which gives back-pressure. False: it belongs to a router, which
  /// drops.
  bool is_senders_own = false;
  /// Largest UDP payload (the link's MTU less headers). Longer datagrams are refused at the sender as too big.
  std::uint32_t datagram_size_max = 1472;
  /// The sending host's firewall drops everything in this direction, and tells the sender.
  bool is_filtered = false;
  /// A router on the way silently drops datagrams larger than this; 0: there is none.
  std::uint32_t black_hole_above = 0;
};

/// The last link to a host, shared by all its senders: a switch port with a tail-drop queue.
struct SimDownlink {
  std::uint64_t bytes_per_second = 0;  // 0 is infinitely fast
  std::uint64_t queue_bytes_max = 1u << 20;
};

/// What the network did to datagrams, on all links together.
struct SimCounters {
  std::uint64_t taken = 0, delivered = 0;
  std::uint64_t lost = 0, duplicated = 0, reordered = 0, corrupted = 0;
  std::uint64_t queue_overran = 0;  // the link's queue was full
  std::uint64_t too_big_on_the_way = 0;
  std::uint64_t receiver_overran = 0;  // the receiver's buffer was full
  std::uint64_t nobody_there = 0;      // no path has the address (any more)
};

}  // namespace fairlead::path
