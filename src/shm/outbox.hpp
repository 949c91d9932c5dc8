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
  /// Takes back a message that waits, is partly sent, is read in place by the peer, or was written to the ring at once.
  /// Its memory is not read any more, or the peer discards what it reads. Returns false if the message is none of
  /// these. The entry keeps its place, because references to later entries count from it. `to`: null if not connected.
  static bool take_back(TransportPeer& peer, Connection* to, link::Reference reference, std::uint64_t cookie);
  /// Returns the reference to the message that was written to the ring last.
  static link::Reference last_written(const TransportPeer& peer) { return kOfPending | peer.pending.last_number(); }
  void release(const Waiting& waiting) {
    if (waiting.copy != nullptr) blocks_.give(waiting.copy);
  }

 private:
  // Set in references to long messages, and to those that were written to the ring at once.
  static constexpr link::Reference kOfLongs = link::Reference{1} << 63, kOfPending = link::Reference{1} << 62;
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
