#pragma once
// The owner's side of regions and queue pairs: publishes them to local peers (docs/one-sided.md). They are published in
// our arena, and in private memory that peers read by system calls. An owner that withdraws one waits for the peers
// that use it (shm/read_sections.hpp).

#include <cstdint>

#include "onesided/own_tables.hpp"
#include "onesided/publish_count.hpp"
#include "onesided/shared_tables.hpp"

namespace fairlead::onesided {

class Publisher {
 public:
  /// `connections` is null if shared memory is off.
  explicit Publisher(shm::Connections* connections) : own_(OwnTables::of(connections)) {}

  bool is_seen() const noexcept { return own_.tables != nullptr; }
  /// Publishes the queue pair at `place`; an empty record withdraws it.
  void publish_pair(std::uint32_t place, const SharedPair& pair);
  /// Publishes a region: `inside` is the part in the arena, `whole` is all of it with its address.
  void publish_region(std::uint32_t slot, const SharedRegion& inside, const SharedRegion& whole);

 private:
  OwnTables own_;
  PublishCount publications_;
};

}  // namespace fairlead::onesided
