#pragma once
// The owner's side of regions and queue pairs: what peers of this host see of them, in our arena, and in memory of ours
// that they read by system calls (docs/one-sided.md). Whoever withdraws something waits for those who are at it
// (shm/read_sections.hpp).

#include <cstdint>

#include "onesided/own_tables.hpp"
#include "onesided/publish_count.hpp"
#include "onesided/shared_tables.hpp"

namespace fairlead::onesided {

class Publisher {
 public:
  /// Null: there are no peers of this host.
  explicit Publisher(shm::Connections* connections) : own_(OwnTables::of(connections)) {}

  bool is_seen() const noexcept { return own_.tables != nullptr; }
  /// In that place; an empty record: nothing.
  void publish_pair(std::uint32_t place, const SharedPair& pair);
  /// `inside`: what of it lies in the arena; `whole`: all of it, by its address.
  void publish_region(std::uint32_t slot, const SharedRegion& inside, const SharedRegion& whole);

 private:
  OwnTables own_;
  PublishCount publications_;
};

}  // namespace fairlead::onesided
