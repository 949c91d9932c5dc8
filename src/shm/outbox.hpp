#pragma once
// What goes out to the peers of this host: a message is written to its peer's ring, or waits there for room, by
// reference; a short one as a copy.

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
  static constexpr std::size_t kWholeMax = std::size_t{8} * 1024;  // longer ones go in chunks

  Outbox(Connections& connections, const TransportOptions& options, TransportCounters& counters)
      : connections_(connections), options_(options), counters_(counters) {}

  /// False if there is no room. `copy`: of its bytes, if they were copied.
  bool write_short(TransportPeer& peer, Connection& to, const link::Outgoing& message, const Block* copy);
  /// Writes what waits, as far as there is room: short ones first, but a chunk in its turn.
  bool pump(TransportPeer& peer, Connection& to);
  /// The message waits for room; `again` if too many do.
  Status keep(TransportPeer& peer, const link::Outgoing& message, link::Reference* reference);
  /// Whether it waited, or was half written, and is not looked at any more. It keeps its place: those behind it are
  /// found by theirs.
  static bool take_back(TransportPeer& peer, link::Reference reference, std::uint64_t cookie);
  void release(const Waiting& waiting) {
    if (waiting.copy != nullptr) blocks_.give(waiting.copy);
  }

 private:
  static constexpr link::Reference kOfLongs = link::Reference{1} << 63;  // the number of a long message
  static constexpr std::size_t kChunkMax = std::size_t{16} * 1024;       // so that the reader copies while we do
  static constexpr int kShortsInTurn = 16;                               // before a chunk has its turn

  bool write_place(TransportPeer& peer, Connection& to);
  bool write_chunk(TransportPeer& peer, Connection& to);
  static bool write_taken_back(TransportPeer& peer, Connection& to);

  Connections& connections_;
  const TransportOptions& options_;
  TransportCounters& counters_;
  link::ObjectPool<Block> blocks_{std::numeric_limits<std::size_t>::max()};  // waiting_max of each peer
};

}  // namespace fairlead::shm
