#pragma once
// What all parts of an engine's queue pairs share.

#include <cstdint>

#include "base/socket_address.hpp"
#include "base/time.hpp"
#include "qp/checked_copies.hpp"
#include "qp/flights.hpp"
#include "qp/pair_counters.hpp"
#include "qp/pair_timers.hpp"
#include "qp/region_table.hpp"
#include "transport/transports.hpp"

namespace fairlead::qp {

struct QueuePair;

struct PairBounds {
  std::uint32_t number_first = 0;   // queue pair numbers are this plus an index; ~0: there are none
  std::uint16_t port_first = 0;     // UDP port of the engine with the first numbers
  std::uint64_t copied_max = 0;     // bytes of a message that is copied at submission
  std::uint64_t early_max = 0;      // bytes kept of requests that came before their turn
  std::uint64_t cma_max = 0;        // bytes that an initiator moves by system calls if the owner sleeps ...
  std::uint64_t cma_awake_max = 0;  // ... and if it is awake
};

struct Shared {
  transport::Transports* transports;  // null if this engine reaches only itself
  base::SocketAddress address;
  PairBounds bounds;
  base::Instant now{};  // of the current call
  RegionTable regions{kRegionsMax};
  CheckedCopies copies{};  // outlives the flights
  Flights flights{regions};
  PairTimers timers{};
  PairCounters counters{};

  shm::Transport* shm_transport() const { return transports != nullptr ? transports->shm_transport() : nullptr; }
  shm::Connections* connections() const {
    return shm_transport() != nullptr ? &shm_transport()->connections() : nullptr;
  }
  bool is_here(const base::SocketAddress& engine) const { return engine == address; }
  /// (address, number) alone lead to an engine: the upper bits of the number are its port's place in the range.
  base::SocketAddress address_of(const verbs::AddressVector& vector, std::uint32_t number) const;
  /// The pieces of a request's own memory, on which it needs these rights.
  verbs::Cause gather(QueuePair& pair, RequestNumber number, std::uint32_t rights, GatherList& list);
  /// What a peer reads.
  verbs::Cause gather(const Permit& place, GatherList& list);
  /// Hands a message to the transports for the pair's peer: a short one is copied, a long one refers to its pieces,
  /// which are held until its outcome.
  Status submit(QueuePair& pair, const FlightOwner& owner, link::Outgoing& message, const GatherList& list);
  std::uint64_t timestamp() const { return static_cast<std::uint64_t>(now.time_since_epoch().count()); }

  static constexpr std::uint32_t kRegionsMax = 65536;
  /// Not yet: other copies are on their way.
  static constexpr verbs::Cause kNoRoomToCopy{~0U};

 private:
  verbs::Cause copy(const Permit& place, std::uint64_t bytes, std::uint64_t offset, GatherList& list);
};

}  // namespace fairlead::qp
