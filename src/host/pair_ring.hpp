#pragma once
// A ring of requests for an application's queue pairs, on the application's side. One thread at a time.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <fairlead/error.hpp>

#include "host/host_connection.hpp"
#include "host/one_segment.hpp"
#include "host/pair_layout.hpp"
#include "queue/producer.hpp"

namespace fairlead::host {

class PairRing {
 public:
  PairRing(HostConnection& host, std::span<std::byte> memory) : host_(host), segment_(memory) {}
  /// Call after the host engine has created the ring.
  Result<> attach();

  /// Returns the number of elements that a request with so many bytes of data takes.
  static constexpr std::size_t elements_of(std::size_t bytes) {
    const std::size_t rest = bytes - std::min(bytes, PairRequest::kBytesHere);
    return 1 + (rest + sizeof(PairRequest) - 1) / sizeof(PairRequest);
  }

  bool has_room(std::size_t elements) const { return requests_->room() >= elements; }
  /// Writes and publishes a request with its data in one or two parts. Returns false if the ring has no room, or the
  /// host engine has ended. The caller calls wake() after its last request.
  bool push(PairRequest request, std::span<const std::byte> first, std::span<const std::byte> second = {});
  void wake() { host_.wake(); }
  /// One step of a wait for room; `step` counts them. Safe in several threads. Returns false if the host engine has
  /// ended. One that is stopped or overloaded has not.
  bool wait_a_moment(std::uint32_t step);

 private:
  HostConnection& host_;
  OneSegment segment_;
  std::optional<queue::Producer> requests_;
};

}  // namespace fairlead::host
