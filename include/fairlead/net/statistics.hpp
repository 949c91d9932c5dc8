#pragma once
// What went through each queue of a transfer machine.

#include <array>
#include <cstdint>
#include <string>

#include <fairlead/net/queue_kind.hpp>
#include <fairlead/time.hpp>

namespace fairlead::net {

/// Counts since the start of the transfer machine or the last reset. Identity, without a reset in between:
/// adds = final events + buffers queued now; a receive buffer for several messages has more successes than adds.
struct QueueStatistics {
  std::uint64_t adds = 0;         ///< successful add() calls
  std::uint64_t deletes = 0;      ///< operations that cancel() or stop(abort) asked to end (not deadlines)
  std::uint64_t successes = 0;    ///< events with status ok
  std::uint64_t failures = 0;     ///< events with any other status
  Duration time_in_queue{};       ///< from add() to the final event, summed up
  std::uint64_t bytes_total = 0;  ///< of successful events: received length, or length sent
  std::uint64_t bytes_max = 0;    ///< largest of them
};

/// One row per queue; index by `std::to_underlying(kind)` or of(kind).
struct Statistics {
  std::array<QueueStatistics, kQueueKinds> queues{};

  const QueueStatistics& of(QueueKind kind) const noexcept { return queues[static_cast<std::size_t>(kind)]; }
  /// Adds up two machines' figures (bytes_max: the larger one).
  Statistics& operator+=(const Statistics& other) noexcept;
};

/// One line of key=value, the queues that were in use: "message_send.adds=3 message_send.deletes=0 ...".
std::string to_record(const Statistics& statistics);

/// A counter of the engine below, under its printed name, e.g. {"link.dropped.crc", 3}.
struct Counter {
  std::string name;
  std::uint64_t value = 0;
};

}  // namespace fairlead::net
