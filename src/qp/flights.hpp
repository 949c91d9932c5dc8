#pragma once
// Messages that the transports send by reference: each holds its regions and its list of pieces until its outcome has
// come. And the cookies of all messages of queue pairs: one that was copied at submission has nothing but its cookie.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/slab.hpp"
#include "link/link.hpp"
#include "qp/gather_list.hpp"
#include "qp/region_table.hpp"
#include "qp/send_queue.hpp"
#include "transport/client.hpp"

namespace fairlead::qp {

/// Whose message it was.
struct FlightOwner {
  std::uint32_t pair = 0;  // index
  RequestNumber number{};
  bool is_request = false;  // else a read's answer
};

/// Of a request that the transports have copied.
constexpr std::uint64_t copied_cookie(const FlightOwner& owner) {
  return transport::Cookie{transport::Client::queue_pairs, true, owner.pair, owner.number.value}.word();
}
constexpr bool is_copied(std::uint64_t cookie) {
  return transport::Cookie::of(cookie).is_copied;
}
constexpr FlightOwner owner_of_copied(std::uint64_t cookie) {
  const auto copied = transport::Cookie::of(cookie);
  return {copied.place, {copied.number}, true};
}

class Flights {
 public:
  static constexpr std::uint32_t kNone = base::Slab<int>::kNone;

  explicit Flights(RegionTable& regions) : regions_(regions), flights_(kMost) {}

  /// Keeps the list, under the name `slot`; null at the bound. Then commit() or release().
  const GatherList* prepare(const GatherList& list, std::uint32_t& slot);
  /// It is in flight: `message` was submitted with its cookie.
  void commit(std::uint32_t slot, const FlightOwner& owner, link::PeerHandle peer);
  void release(std::uint32_t slot) {
    flights_[slot].list.clear();
    flights_.release(slot);
  }
  std::uint64_t cookie(std::uint32_t slot) const {
    return transport::Cookie{transport::Client::queue_pairs, false, slot, flights_.generation(slot)}.word();
  }
  /// The outcome of one that was committed has come: lets go of what it held.
  FlightOwner end(std::uint64_t cookie);

  /// Calls visit(peer) for each in flight of that queue pair, or that holds a region: is_its(hold).
  template <typename Visit>
  void for_each_of_pair(std::uint32_t pair, Visit&& visit) {
    flights_.for_each([&](std::uint32_t, const Flight& flight) {
      if (flight.owner.pair == pair) visit(flight.peer);
    });
  }
  template <typename IsIts, typename Visit>
  void for_each_of_region(IsIts&& is_its, Visit&& visit) {
    flights_.for_each([&](std::uint32_t, const Flight& flight) {
      if (std::ranges::any_of(flight.list.regions(), is_its)) visit(flight.peer);
    });
  }
  /// As QueuePairs::check(): adds those of each queue pair, and the holds of each region.
  void count(std::vector<std::uint32_t>& by_pair, std::vector<std::uint32_t>& holds_by_region);

 private:
  static constexpr std::uint32_t kMost = 1U << 18;

  struct Flight {
    Flight() {}
    FlightOwner owner;
    link::PeerHandle peer;
    GatherList list;
  };

  RegionTable& regions_;
  base::Slab<Flight> flights_;
};

}  // namespace fairlead::qp
