#pragma once
// Sends messages to local peers. A message is written to the peer's ring, or waits for room. A waiting message is kept
// by reference; a short one is copied.

#include <cstdint>
#include <limits>

#include "link/link.hpp"
#include "link/object_pool.hpp"
#include "shm/connections.hpp"
#include "shm/counters.hpp"
#include "shm/transport_options.hpp"
#include "shm/transport_peer.hpp"
#include "wire/shm_record.hpp"

namespace fairlead::shm {

class Outbox {
 public:
  static constexpr std::size_t kWholeMax = std::size_t{8} * 1024;  // bytes; longer messages are sent in chunks

  Outbox(Connections& connections, const TransportOptions& options, TransportCounters& counters)
      : connections_(connections), options_(options), counters_(counters) {}

  /// Returns false if the ring has no room. `copy` holds the payload if it was copied.
  bool write_short(TransportPeer& peer, Connection& to, const link::Outgoing& message, const Block* copy);
  /// Writes as many waiting messages as fit: short ones first, but chunks get their turn.
  bool pump(TransportPeer& peer, Connection& to);
  /// Queues the message until there is room. Returns `again` if too many wait.
  Status keep(TransportPeer& peer, const link::Outgoing& message, link::Reference* reference);
  /// Takes back a message that waits or is partly sent; it is not read any more. Returns false if it is neither. The
  /// entry keeps its place, because references to later entries count from it.
  static bool take_back(TransportPeer& peer, link::Reference reference, std::uint64_t cookie);
  void release(const Waiting& waiting) {
    if (waiting.copy != nullptr) blocks_.give(waiting.copy);
  }

 private:
  static constexpr link::Reference kOfLongs = link::Reference{1} << 63;  // set in references to long messages
  // Small enough that the reader copies one chunk while the writer fills the next.
  static constexpr std::size_t kChunkMax = std::size_t{16} * 1024;
  static constexpr int kShortsInTurn = 16;  // short messages before a chunk gets its turn

  bool write_place(TransportPeer& peer, Connection& to);
  bool write_chunk(TransportPeer& peer, Connection& to);
  static bool write_taken_back(TransportPeer& peer, Connection& to);

  Connections& connections_;
  const TransportOptions& options_;
  TransportCounters& counters_;
  // Limited by waiting_max of each peer instead.
  link::ObjectPool<Block> blocks_{std::numeric_limits<std::size_t>::max()};
};

}  // namespace fairlead::shm
