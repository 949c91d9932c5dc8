#pragma once
// What peers of this host may see of our regions and queue pairs, so that they carry out one-sided requests by
// themselves (docs/shm.md): records in our arena, and in memory that they reach by system calls.

#include <cstdint>

#include "qp/queue_pair.hpp"
#include "qp/shared.hpp"
#include "shm/publish_count.hpp"

namespace fairlead::shm {
struct OwnedRecords;
struct SharedTables;
}  // namespace fairlead::shm

namespace fairlead::qp {

class PublishedTables {
 public:
  explicit PublishedTables(Shared& shared) : shared_(shared) {}

  /// As it is now: nothing while it takes no requests.
  void publish(const QueuePair& pair);
  /// The region of a key as it is now, or its end.
  void publish_region(std::uint32_t key);

 private:
  shm::SharedTables* tables() const;
  shm::OwnedRecords* records() const;

  Shared& shared_;
  shm::PublishCount publications_;
};

}  // namespace fairlead::qp
