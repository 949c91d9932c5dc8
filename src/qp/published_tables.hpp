#pragma once
// What peers of this host may see of our regions and queue pairs, so that they carry out one-sided requests by
// themselves (onesided/publisher.hpp).

#include <cstdint>

#include "onesided/publisher.hpp"
#include "qp/queue_pair.hpp"
#include "qp/shared.hpp"

namespace fairlead::qp {

class PublishedTables {
 public:
  explicit PublishedTables(Shared& shared) : regions_(shared.regions), publisher_(shared.connections()) {}

  /// As it is now: nothing while it takes no requests.
  void publish(const QueuePair& pair);
  /// The region of a key as it is now, or its end.
  void publish_region(std::uint32_t key);

 private:
  const RegionTable& regions_;
  onesided::Publisher publisher_;
};

}  // namespace fairlead::qp
