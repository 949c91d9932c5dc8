#pragma once
// State that all parts of an engine's queue pairs share.

#include <cstdint>

#include "base/socket_address.hpp"
#include "base/time.hpp"
#include "qp/checked_copies.hpp"
#include "qp/copy_turn.hpp"
#include "qp/flights.hpp"
#include "qp/pair_counters.hpp"
#include "qp/pair_timers.hpp"
#include "qp/region_table.hpp"
#include "transport/transports.hpp"

namespace fairlead::qp {

struct QueuePair;

struct PairBounds {
  std::uint32_t number_first = 0;   // the number of index 0; ~0: the engine has no numbers
  std::uint16_t port_first = 0;     // first UDP port of the range (docs/queue-pairs.md)
  std::uint64_t copied_max = 0;     // longest message copied at submission, in bytes
  std::uint64_t early_max = 0;      // most bytes held of early requests and of datagrams in chunks
  std::uint64_t cma_max = 0;        // most bytes of an access by cross-memory attach if the owner sleeps ...
  std::uint64_t cma_awake_max = 0;  // ... and if it polls its ring
};

struct Shared {
  transport::Transports* transports;  // null if this engine reaches only itself
  base::SocketAddress address;
  PairBounds bounds;
  base::Instant now{};  // of the current call
  CopyTurn turn{};      // the same
  RegionTable regions{kRegionsMax};
  CheckedCopies copies{};  // outlives `flights`, which refer to it
  Flights flights{regions};
  PairTimers timers{};
  PairCounters counters{};

  shm::Transport* shm_transport() const { return transports != nullptr ? transports->shm_transport() : nullptr; }
  shm::Connections* connections() const {
    return shm_transport() != nullptr ? &shm_transport()->connections() : nullptr;
  }
  bool is_here(const base::SocketAddress& engine) const { return engine == address; }
  /// Returns the engine's address for a queue pair: the upper bits of the number are the port's offset in the range.
  base::SocketAddress address_of(const verbs::AddressVector& vector, std::uint32_t number) const;
  /// Collects the memory of a request, on which it needs these rights. Returns the reason of a failure, or `none`.
  verbs::Cause gather(QueuePair& pair, RequestNumber number, std::uint32_t rights, GatherList& list);
  /// Collects the memory that a peer reads.
  verbs::Cause gather(const Permit& place, GatherList& list);
  /// Submits a message to the queue pair's peer. A short one is copied; a long one refers to its pieces, which are held
  /// until its outcome. Returns `again` if there is no room.
  Status submit(QueuePair& pair, const FlightOwner& owner, link::Outgoing& message, const GatherList& list);
  std::uint64_t timestamp() const { return static_cast<std::uint64_t>(now.time_since_epoch().count()); }

  static constexpr std::uint32_t kRegionsMax = 65536;
  /// Try again later: the copies of other messages take up all room.
  static constexpr verbs::Cause kNoRoomToCopy{~0U};

 private:
  verbs::Cause copy(const Permit& place, std::uint64_t bytes, std::uint64_t offset, GatherList& list);
};

}  // namespace fairlead::qp
