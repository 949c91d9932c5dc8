#pragma once
// Messages that the transports send by reference. Each holds its regions and its list of pieces until its outcome. Also
// the cookies of all messages of queue pairs: a message that was copied at submission has only a cookie.

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

/// The queue pair and the request of a message.
struct FlightOwner {
  std::uint32_t pair = 0;  // index
  RequestNumber number{};
  bool is_request = false;  // false: the answer of a read
};

/// The cookie of a request that the transports have copied.
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

  /// Stores the list and sets `slot`; returns null at the limit. commit() or release() must follow.
  const GatherList* prepare(const GatherList& list, std::uint32_t& slot);
  /// Holds the regions of a message that was submitted with the cookie of `slot`.
  void commit(std::uint32_t slot, const FlightOwner& owner, link::PeerHandle peer, link::Reference reference);
  void release(std::uint32_t slot) {
    flights_[slot].list.clear();
    flights_.release(slot);
  }
  std::uint64_t cookie(std::uint32_t slot) const {
    return transport::Cookie{transport::Client::queue_pairs, false, slot, flights_.generation(slot)}.word();
  }
  /// Releases what a committed message holds, after its outcome.
  FlightOwner end(std::uint64_t cookie);

  /// Calls visit(owner, peer, reference, cookie) for each message in flight.
  template <typename Visit>
  void for_each(Visit&& visit) {
    flights_.for_each([&](std::uint32_t slot, const Flight& flight) {
      visit(flight.owner, flight.peer, flight.reference, cookie(slot));
    });
  }
  /// Calls visit(peer) for each message of the queue pair in flight.
  template <typename Visit>
  void for_each_of_pair(std::uint32_t pair, Visit&& visit) {
    flights_.for_each([&](std::uint32_t, const Flight& flight) {
      if (flight.owner.pair == pair) visit(flight.peer);
    });
  }
  /// Calls visit(peer) for each message in flight with a hold for which is_its(hold) is true.
  template <typename IsIts, typename Visit>
  void for_each_of_region(IsIts&& is_its, Visit&& visit) {
    flights_.for_each([&](std::uint32_t, const Flight& flight) {
      if (std::ranges::any_of(flight.list.regions(), is_its)) visit(flight.peer);
    });
  }
  /// For QueuePairs::check(): adds up the messages by queue pair index, and the holds by region slot.
  void count(std::vector<std::uint32_t>& by_pair, std::vector<std::uint32_t>& holds_by_region);

 private:
  static constexpr std::uint32_t kMost = 1U << 18;

  struct Flight {
    Flight() {}
    FlightOwner owner;
    link::PeerHandle peer;
    link::Reference reference = 0;
    GatherList list;
  };

  RegionTable& regions_;
  base::Slab<Flight> flights_;
};

}  // namespace fairlead::qp
