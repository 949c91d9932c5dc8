#pragma once
// Publishes this engine's regions and queue pairs, so that local peers complete one-sided requests themselves
// (onesided/publisher.hpp).

#include <cstdint>

#include "onesided/publisher.hpp"
#include "qp/queue_pair.hpp"
#include "qp/shared.hpp"

namespace fairlead::qp {

class PublishedTables {
 public:
  explicit PublishedTables(Shared& shared) : regions_(shared.regions), publisher_(shared.connections()) {}

  /// Publishes the current state of a queue pair, or withdraws it while it accepts no requests.
  void publish(const QueuePair& pair);
  /// Returns the access flags that publish() gives local peers: 0 while the queue pair accepts no requests.
  static std::uint32_t rights(const QueuePair& pair);
  /// Publishes the current region of the key; withdraws it if there is none, or while a withdrawal is open.
  void publish_region(std::uint32_t key);

 private:
  const RegionTable& regions_;
  onesided::Publisher publisher_;
};

}  // namespace fairlead::qp
