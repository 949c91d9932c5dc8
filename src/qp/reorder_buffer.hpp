#pragma once
// Messages that arrive in chunks, and requests that arrived before their turn. A request that waits is copied, within
// limits. If there is no room, it is dropped and noted, and the responder asks for it again when its turn comes: the
// link has acknowledged it and will not retransmit it.

#include <cstddef>
#include <cstdint>
#include <span>

#include "link/link.hpp"
#include "qp/arrival_places.hpp"
#include "qp/queue_pair.hpp"
#include "qp/shared.hpp"

namespace fairlead::qp {

class ReorderBuffer {
 public:
  static constexpr std::uint32_t kNone = Arrival::kNone;

  explicit ReorderBuffer(Shared& shared) : shared_(shared) {}

  Arrival& operator[](std::uint32_t slot) { return places_[slot]; }
  /// Finds the message of a later chunk; null if it is unknown.
  Arrival* find(std::uint64_t target) { return places_.find_target(target); }
  static std::uint32_t slot_of(std::uint64_t target) { return ArrivalPlaces::slot_of(target); }

  /// Returns a slot for a request of this queue pair, which its later chunks find; kNone if there is none.
  std::uint32_t open_request(const QueuePair& pair, const link::Delivery& delivery);
  /// The same for an answer, whose chunks are placed at once.
  std::uint32_t open_answer(const QueuePair& pair, const link::Delivery& delivery);
  /// The same for a datagram, with memory for all of it.
  std::uint32_t open_datagram(const link::Delivery& delivery);
  /// Frees the slot. Later chunks are discarded.
  void release(std::uint32_t slot) { places_.release(slot); }
  void release_datagram(std::uint32_t slot);
  /// Drops a request. Its later chunks are discarded.
  void drop(std::uint32_t slot);

  /// Stores a request that arrived before its turn. Returns false if it is known already, or there is no room.
  bool hold(QueuePair& pair, const link::Delivery& delivery);
  /// Stores a chunk of a request that waits. Returns false if there is no room; the request is then dropped.
  bool hold_more(QueuePair& pair, std::uint32_t slot, const link::Delivery& delivery);
  void unlink(QueuePair& pair, std::uint32_t slot);
  /// Subtracts the bytes that an arrival held.
  void let_go(Arrival& arrival) { held_bytes_ -= std::exchange(arrival.bytes_held, 0); }
  /// Drops all requests of the queue pair, including the current one.
  void drop_all(QueuePair& pair);

  void check(const QueuePair& pair);
  /// Called after check() of all queue pairs.
  void check_sum();

 private:
  friend class PairsHandover;

  static constexpr std::uint32_t kMostOfPair = 8192;

  bool can_hold(const QueuePair& pair, std::size_t bytes) const;
  void link(QueuePair& pair, std::uint32_t slot, std::uint32_t before);
  bool keep(QueuePair& pair, std::uint32_t slot, const link::Delivery& delivery);
  void give_up(QueuePair& pair, std::uint32_t slot);
  static bool add_piece(Arrival& arrival, std::uint64_t offset, std::size_t size);
  void note_dropped(QueuePair& pair, wire::RequestSequence sequence);

  Shared& shared_;
  ArrivalPlaces places_;
  std::uint64_t held_bytes_ = 0;
  std::uint64_t datagram_bytes_ = 0;  // of these, datagrams
  std::uint64_t checked_bytes_ = 0;
};

}  // namespace fairlead::qp
