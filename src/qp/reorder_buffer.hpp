#pragma once
// Messages that come in chunks, and requests that came before their turn. What waits is copied, within bounds; what
// finds no room is thrown away and noted, so that the requester is asked to come back with it when its turn has come:
// the link has acknowledged it and will not.

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
  /// Where a later chunk belongs; null if nobody waits for it.
  Arrival* find(std::uint64_t target) { return places_.find_target(target); }
  static std::uint32_t slot_of(std::uint64_t target) { return ArrivalPlaces::slot_of(target); }

  /// A place for a request of this pair; kNone if there is none. Its later chunks find it.
  std::uint32_t open_request(const QueuePair& pair, const link::Delivery& delivery);
  /// The same for an answer, whose chunks are placed at once.
  std::uint32_t open_answer(const QueuePair& pair, const link::Delivery& delivery);
  /// The same for a datagram, with room for all of it.
  std::uint32_t open_datagram(const link::Delivery& delivery);
  /// Its place is free; chunks still to come have none.
  void release(std::uint32_t slot) { places_.release(slot); }
  void release_datagram(std::uint32_t slot);
  /// Chunks still to come are thrown away.
  void drop(std::uint32_t slot);

  /// A request before its turn. False if it does not wait: it is known already, or found no room.
  bool hold(QueuePair& pair, const link::Delivery& delivery);
  /// More of one that waits. False if there is no room: it is thrown away.
  bool hold_more(QueuePair& pair, std::uint32_t slot, const link::Delivery& delivery);
  void unlink(QueuePair& pair, std::uint32_t slot);
  /// What it held is in its place.
  void let_go(Arrival& arrival) { held_bytes_ -= std::exchange(arrival.bytes_held, 0); }
  /// Those of the pair, with the one that it executes.
  void drop_all(QueuePair& pair);

  void check(const QueuePair& pair);
  /// After all pairs.
  void check_sum();

 private:
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
  std::uint64_t datagram_bytes_ = 0;  // of those
  std::uint64_t checked_bytes_ = 0;
};

}  // namespace fairlead::qp
