#include "observe/flight_recorder.hpp"

#include <fmt/format.h>

#include <fairlead/error.hpp>

#include <chrono>
#include <iterator>
#include <new>
#include <utility>

namespace fairlead::observe {
namespace {

double seconds_of(base::Instant time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

}  // namespace

std::string FlightEvent::to_string() const {
  if (kind() >= FlightKind::count_) return "?";
  const FlightKindRow& row = kFlightKinds[static_cast<std::size_t>(kind())];
  if (adds_up(kind())) return fmt::format(fmt::runtime(row.sentence), number(), size);
  return fmt::format(fmt::runtime(row.sentence), fairlead::to_string(static_cast<Status>(number())), size);
}

void FlightRecorder::begin(std::uint32_t peer) {
  if (peer >= ring_of_.size()) ring_of_.resize(peer + 1);
  Ring& ring = quietest();
  ring.recorded = 0;
  ring.peer = peer;
  ring_of_[peer] = &ring;
}

// Returns a ring without an owner.
FlightRecorder::Ring& FlightRecorder::quietest() {
  if (rings_.size() < rings_max_) {
    if (Ring* const made = new (std::nothrow) Ring) return *rings_.emplace_back(made);
  }
  // Two rounds at most: the first one clears the marks.
  for (;; ++hand_) {
    Ring& ring = *rings_[hand_ % rings_.size()];
    if (std::exchange(ring.is_recent, false)) continue;
    ++hand_;
    if (ring_of_[ring.peer] == &ring) ring_of_[ring.peer] = nullptr;  // otherwise its peer was forgotten already
    return ring;
  }
}

void FlightRecorder::forget(std::uint32_t peer) noexcept {
  if (peer >= ring_of_.size() || ring_of_[peer] == nullptr) return;
  ring_of_[peer]->recorded = 0;
  ring_of_[peer]->is_recent = false;
  ring_of_[peer] = nullptr;
}

std::vector<FlightEvent> FlightRecorder::events(std::uint32_t peer) const {
  std::vector<FlightEvent> result;
  if (peer >= ring_of_.size() || ring_of_[peer] == nullptr) return result;
  const Ring& ring = *ring_of_[peer];
  for (std::uint64_t i = ring.recorded - std::min<std::uint64_t>(ring.recorded, kEvents); i < ring.recorded; ++i)
    result.push_back(ring.events[i % kEvents]);
  return result;
}

std::string FlightRecorder::describe(std::uint32_t peer, std::string_view name, base::Instant now) const {
  const std::vector<FlightEvent> all = events(peer);
  return all.empty() ? std::string() : describe_flight(all, recorded(peer), name, now);
}

std::string describe_flight(std::span<const FlightEvent> events, std::uint64_t recorded, std::string_view name,
                            base::Instant now) {
  if (events.empty()) return {};
  std::string text = fmt::format("the last {} of {} events with {}, by their age:\n", events.size(), recorded, name);
  for (const FlightEvent& event : events) {
    const double age = seconds_of(now) - seconds_of(event.at);  // events of another process may have any time
    fmt::format_to(std::back_inserter(text), "{:14.6f} s  {}\n", age, event.to_string());
  }
  return text;
}

}  // namespace fairlead::observe
