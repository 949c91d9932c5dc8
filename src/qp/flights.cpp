#include "qp/flights.hpp"

#include "base/ensure.hpp"

namespace fairlead::qp {

const GatherList* Flights::prepare(const GatherList& list, std::uint32_t& slot) {
  slot = flights_.acquire();
  if (slot == kNone) return nullptr;
  flights_[slot].list = list;
  return &flights_[slot].list;
}

void Flights::commit(std::uint32_t slot, const FlightOwner& owner, link::PeerHandle peer, link::Reference reference) {
  Flight& flight = flights_[slot];
  flight.owner = owner;
  flight.peer = peer;
  flight.reference = reference;
  for (const std::uint32_t region : flight.list.regions())
    if (region != GatherList::kNoRegion) regions_.hold(region);
}

FlightOwner Flights::end(std::uint64_t cookie) {
  const auto slot = transport::Cookie::of(cookie).place;
  Flight* const flight = flights_.find(slot, static_cast<std::uint32_t>(cookie >> 32));
  ENSURE(flight != nullptr, "the outcome of flight {} came twice", slot);
  const FlightOwner owner = flight->owner;
  for (const std::uint32_t region : flight->list.regions())
    if (region != GatherList::kNoRegion) regions_.let_go(region);
  release(slot);
  return owner;
}

void Flights::count(std::vector<std::uint32_t>& by_pair, std::vector<std::uint32_t>& holds_by_region) {
  const auto add = [](std::vector<std::uint32_t>& counts, std::uint32_t index) {
    if (index >= counts.size()) counts.resize(index + 1);
    ++counts[index];
  };
  flights_.for_each([&](std::uint32_t, const Flight& flight) {
    add(by_pair, flight.owner.pair);
    for (const std::uint32_t hold : flight.list.regions())
      if (hold != GatherList::kNoRegion) add(holds_by_region, RegionTable::slot_of(hold));
  });
}

}  // namespace fairlead::qp
