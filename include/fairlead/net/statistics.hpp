#pragma once
// Statistics of each queue of a transfer machine.

#include <array>
#include <cstdint>
#include <string>

#include <fairlead/net/queue_kind.hpp>
#include <fairlead/time.hpp>

namespace fairlead::net {

/// Counts since the start of the transfer machine or the last reset. Without a reset, adds = final events + buffers
/// queued now. A receive buffer for several messages has more successes than adds.
struct QueueStatistics {
  std::uint64_t adds = 0;         ///< successful add() calls
  std::uint64_t deletes = 0;      ///< operations that cancel() or stop(abort) asked to end; deadlines do not count
  std::uint64_t successes = 0;    ///< events with status ok
  std::uint64_t failures = 0;     ///< events with any other status
  Duration time_in_queue{};       ///< sum of the times from add() to the final event
  std::uint64_t bytes_total = 0;  ///< sum of the lengths received or sent by successful events
  std::uint64_t bytes_max = 0;    ///< the largest of these lengths
};

/// One row per queue; index by `std::to_underlying(kind)` or of(kind).
struct Statistics {
  std::array<QueueStatistics, kQueueKinds> queues{};

  const QueueStatistics& of(QueueKind kind) const noexcept { return queues[static_cast<std::size_t>(kind)]; }
  /// Adds the figures of another machine (bytes_max: takes the larger one).
  Statistics& operator+=(const Statistics& other) noexcept;
};

/// One line of key=value pairs for the queues that were used: "message_send.adds=3 message_send.deletes=0 ...".
std::string to_record(const Statistics& statistics);

/// A counter of the engine, with its printed name, e.g. {"link.malformed.wrong_checksum", 3}.
struct Counter {
  std::string name;
  std::uint64_t value = 0;
};

}  // namespace fairlead::net
