#pragma once
// Records the last events of each peer, always, so that the history of a failure is available afterwards.
//
// Model. A peer with events gets a ring of kEvents events; the newest overwrites the oldest. There are at most
// `rings_max` rings, so thousands of peers cost only a pointer each. A further peer takes the ring of the one that was
// quiet longest (approximately: second chance), also if there is no memory for a new ring. Recording is one comparison
// with the previous event, and one store. One thread at a time.

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "observe/flight_event.hpp"

namespace fairlead::observe {

/// Describes events for people: a heading, and one line per event with its age. Empty if there are none.
std::string describe_flight(std::span<const FlightEvent> events, std::uint64_t recorded, std::string_view name,
                            base::Instant now);

class FlightRecorder {
 public:
  static constexpr std::uint32_t kEvents = 128;  // 2 KiB per peer
  static constexpr auto kMergeWithin = std::chrono::microseconds(100);

  static constexpr std::uint32_t kRingsMax = 256;

  /// Reserves space for `peers_max` peers, and allocates the first ring.
  explicit FlightRecorder(std::uint32_t rings_max = kRingsMax, std::uint32_t peers_max = 1) : rings_max_(rings_max) {
    ring_of_.reserve(peers_max);
    rings_.reserve(rings_max);
    rings_.push_back(std::make_unique<Ring>());
  }

  /// Records an event. `peer`: a small number chosen by the caller. `number` and `size`: as in the kind's sentence.
  void record(std::uint32_t peer, FlightKind kind, std::uint64_t number, std::uint64_t size, base::Instant now) {
    if (peer >= ring_of_.size() || ring_of_[peer] == nullptr) [[unlikely]]
      begin(peer);
    Ring& ring = *ring_of_[peer];
    ring.is_recent = true;
    FlightEvent& last = ring.events[(ring.recorded - 1) % kEvents];
    if (adds_up(kind) && ring.recorded > 0 && last.kind() == kind && now - last.at < kMergeWithin) {
      last = FlightEvent(last.at, kind, last.number() + number, last.size + size);
      return;
    }
    ring.events[ring.recorded++ % kEvents] = FlightEvent(now, kind, number, size);
  }

  /// Forgets the peer; its number may name another one from now on.
  void forget(std::uint32_t peer) noexcept;

  /// Returns the events of a peer, the oldest first; empty if its ring was taken.
  std::vector<FlightEvent> events(std::uint32_t peer) const;
  /// Returns how many events were recorded since the peer got its ring; it must have one.
  std::uint64_t recorded(std::uint32_t peer) const { return ring_of_[peer]->recorded; }
  /// Describes a peer's events, as describe_flight().
  std::string describe(std::uint32_t peer, std::string_view name, base::Instant now) const;

  /// Calls visit(peer) for each peer that has a ring.
  template <typename Visit>
  void for_each_peer(Visit&& visit) const {
    for (const auto& ring : rings_) {
      if (ring->recorded > 0) visit(ring->peer);
    }
  }

 private:
  struct alignas(64) Ring {
    std::uint64_t recorded = 0;  // since the ring was assigned
    std::uint32_t peer = 0;
    bool is_recent = false;
    alignas(64) std::array<FlightEvent, kEvents> events{};
  };

  void begin(std::uint32_t peer);
  Ring& quietest();

  std::uint32_t rings_max_;
  std::vector<std::unique_ptr<Ring>> rings_;
  std::vector<Ring*> ring_of_;  // indexed by peer
  std::size_t hand_ = 0;
};

}  // namespace fairlead::observe
