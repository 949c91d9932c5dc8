#pragma once
// The state of a ServedActive for the next program in this process (service_state.hpp).

#include <array>
#include <cstdint>
#include <vector>

#include "engine/active_messages.hpp"
#include "engine/active_state.hpp"
#include "host/active_layout.hpp"
#include "queue/producer.hpp"

namespace fairlead::host {

struct WaitingState {
  engine::ArrivalState arrival;
  std::uint64_t segment = 0;  // number
};

struct ServedActiveState {
  std::uint64_t memory = 0;                              // offset in the application's memory
  std::uint64_t segment_offset = 0, segment_length = 0;  // there, too
  std::uint64_t segment = 0;                             // number
  std::uint32_t places = 0;
  bool has_left = false;
  std::array<std::uint64_t, ActivePage::kSlots / 64> used_slots{};
  queue::Producer::Position arrivals;
  std::vector<std::uint64_t> unanswered_names;        // base::Slab::names()
  std::vector<engine::UnansweredRequest> unanswered;  // by slot
  std::vector<WaitingState> waiting;
};

template <typename Archive>
void fields(Archive& archive, WaitingState& waiting) {
  archive(waiting.arrival, waiting.segment);
}
template <typename Archive>
void fields(Archive& archive, ServedActiveState& active) {
  archive(active.memory, active.segment_offset, active.segment_length, active.segment, active.places, active.has_left);
  for (std::uint64_t& slots : active.used_slots) archive(slots);
  archive(active.arrivals, active.unanswered_names, active.unanswered, active.waiting);
}

}  // namespace fairlead::host

namespace fairlead::engine {

template <typename Archive>
void fields(Archive& archive, UnansweredRequest& request) {
  archive(request.source, request.name, request.reply_access, request.word);
}

}  // namespace fairlead::engine
