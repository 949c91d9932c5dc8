#pragma once
// The ring of requests for an application's queue pairs, on the application's side. One thread at a time.

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
  /// Call after the host engine has created the ring.
  Result<> attach();

  /// Writes and publishes a request with its data in one or two parts. Waits at most 2 s for room in the ring. Returns
  /// false if the host engine has made no room or has ended. The caller calls wake() after its last request.
  bool push(PairRequest request, std::span<const std::byte> first, std::span<const std::byte> second = {});
  void wake() { host_.wake(); }
  /// Returns the total number of requests pushed.
  std::uint64_t pushed() const noexcept { return pushed_; }

 private:
  bool wait_for_room(std::size_t elements);

  HostConnection& host_;
  std::uint64_t pushed_ = 0;
  OneSegment segment_;
  std::optional<queue::Producer> requests_;
};

}  // namespace fairlead::host
