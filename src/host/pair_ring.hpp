#pragma once
// Requests of an application's queue pairs on their way to the host engine. One thread at a time.

#include <cstddef>
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
  /// After the host engine has made the ring.
  Result<> attach();

  /// With what belongs to it, in one or two parts. Waits for room, which the host engine makes soon; false if it does
  /// not, or has ended. It is published; wake() when all of a call are.
  bool push(PairRequest request, std::span<const std::byte> first, std::span<const std::byte> second = {});
  void wake() { host_.wake(); }
  /// Requests that were pushed, ever.
  std::uint64_t pushed() const noexcept { return pushed_; }

 private:
  bool wait_for_room(std::size_t elements);

  HostConnection& host_;
  std::uint64_t pushed_ = 0;
  OneSegment segment_;
  std::optional<queue::Producer> requests_;
};

}  // namespace fairlead::host
