#pragma once
// The active messages of a port, in the application: takes arrivals from the shared memory, and puts the data of placed
// messages into the segment.
//
// The host engine writes placed messages to a shadow of the segment, in shared memory. They are copied to the segment
// when they are taken, so nobody but the caller writes to it.

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "engine/active.hpp"
#include "engine/open_requests.hpp"
#include "host/active_layout.hpp"
#include "host/client_memory.hpp"
#include "queue/consumer.hpp"

namespace fairlead::host {

/// Threads: has_arrival() any thread; everything else is a [consumer] call of the port.
class ClientActive {
 public:
  /// Allocates the port's part of the shared memory.
  static Result<std::unique_ptr<ClientActive>> make(const std::shared_ptr<ClientMemory>& memory);

  /// Where the port's part of the shared memory begins.
  std::byte* begin() const noexcept { return bytes_.get(); }

  /// A segment and its shadow.
  struct Place {
    engine::Segment segment;
    std::shared_ptr<std::byte> shadow;
    std::uint64_t number = 0;
  };
  const Place& place() const noexcept { return place_; }
  void set_place(Place place) { place_ = std::move(place); }

  /// Returns the next arrival; null if there is none. Drops answers that nobody awaits. Adds the bytes that it copied
  /// to `copied`.
  engine::Arrival* next(std::uint64_t& copied);
  void release(engine::Arrival& arrival);
  bool has_arrival() const noexcept { return !arrivals_.is_empty(); }
  /// Returns whether the host engine waits for the room that next() or release() made: then wake it.
  bool takes_stall() { return memory_.page().stalled.sleeping.exchange(0, std::memory_order_acq_rel) != 0; }

  /// Returns whether the loss ends the association that carries the request. False if the host engine has not sent it
  /// yet.
  bool has_ended(std::uint64_t request, const engine::PeerLoss& loss) const;

  engine::OpenRequests requests;  // without an answer

 private:
  ClientActive(std::shared_ptr<std::byte> bytes, queue::Consumer arrivals)
      : bytes_(std::move(bytes)), memory_(bytes_.get()), arrivals_(std::move(arrivals)) {}
  bool is_awaited(const ArrivalHead& head);
  void fill(engine::Arrival& arrival, const ArrivalHead& head, const std::byte* element, std::uint64_t& copied);
  void give_back_slot(std::uint8_t slot);

  std::shared_ptr<std::byte> bytes_;
  ActiveMemory memory_;
  queue::Consumer arrivals_;
  Place place_;
  std::deque<engine::Arrival> all_;
  std::vector<engine::Arrival*> unused_;
};

}  // namespace fairlead::host
