// The state of a port's active messages that outlives the program serving them.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/saved.hpp"
#include "host/layout.hpp"
#include "host/served_active.hpp"

namespace fairlead::host {
ServedActiveState ServedActive::save(const std::byte* head) {
  take_all();
  ServedActiveState state{.memory = static_cast<std::uint64_t>(memory_.begin() - head),
                          .segment_offset = place_.length > 0 ? static_cast<std::uint64_t>(place_.base - head) : 0,
                          .segment_length = place_.length,
                          .segment = segment_,
                          .places = places_,
                          .has_left = has_left_,
                          .used_slots = used_slots_,
                          .arrivals = arrivals_ ? arrivals_->position() : queue::Producer::Position{.is_refused = true},
                          .unanswered_names = unanswered_.names(),
                          .unanswered = {},
                          .waiting = {}};
  unanswered_.for_each(
      [&](std::uint32_t, const engine::UnansweredRequest& request) { state.unanswered.push_back(request); });
  for (const Waiting& waiting : waiting_)
    state.waiting.push_back({.arrival = engine::state_of(*waiting.arrival), .segment = waiting.segment});
  return state;
}

Result<std::unique_ptr<ServedActive>> ServedActive::resume(embedded::EmbeddedActive& engine, engine::PortHandle port,
                                                           const base::SocketAddress& address, std::byte* head,
                                                           ActiveRoom& room, const ServedActiveState& state) {
  std::unique_ptr<ServedActive> made(new ServedActive(engine, port, address, head + state.memory, room));
  const bool is_there = state.segment_length > 0;
  const engine::Segment segment{.base = is_there ? head + state.segment_offset : nullptr,
                                .length = state.segment_length};
  if (auto restored = made->restore(state, segment); !restored) return std::unexpected(std::move(restored.error()));
  return made;
}

Result<> ServedActive::restore(const ServedActiveState& state, const engine::Segment& segment) {
  auto arrivals = queue::Producer::resume(queue_memory_, state.arrivals);
  if (arrivals && arrivals->element_bytes() == kArrivalBytes)
    arrivals_ = std::move(*arrivals);
  else
    fault_ = "it has damaged the queue of its active messages";
  if (state.places > kRequestPlacesMax - std::min(kRequestPlacesMax, room_.request_places))
    return base::cannot_restore("more requests than an application may have");
  room_.request_places += places_ = state.places;
  has_left_ = state.has_left;
  used_slots_ = state.used_slots;
  if (!unanswered_.restore(state.unanswered_names) || unanswered_.used() != state.unanswered.size())
    return base::cannot_restore("its unanswered requests do not fit in the table");
  unanswered_.for_each([next = state.unanswered.begin()](std::uint32_t, engine::UnansweredRequest& request) mutable {
    request = *next++;
  });
  place_ = segment;
  segment_ = state.segment;
  if (!engine_.give_segment(port_, segment)) return base::cannot_restore("a port takes no active messages");
  for (const WaitingState& waiting : state.waiting) {
    engine::Arrival* const arrival =
        engine_.give_arrival(port_, waiting.arrival) ? engine_.next_arrival(port_) : nullptr;
    if (arrival == nullptr) return base::cannot_restore("an active message contradicts itself");
    waiting_.push_back({arrival, waiting.segment});
  }
  return {};
}

}  // namespace fairlead::host
