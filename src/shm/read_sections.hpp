#pragma once
// Tracks which peers use our memory. Peers carry out one-sided operations there by themselves, and publish what they
// use in the page that they share with us. An owner that withdraws an object waits only for the peers that use it.

#include <cstdint>
#include <vector>

#include "shm/connection_table.hpp"

namespace fairlead::shm {

/// A peer that was using an object when the owner withdrew it.
struct SectionReader {
  std::uint32_t slot = 0, generation = 0;
  std::uint64_t at = 0;
};

class ReadSections {
 public:
  explicit ReadSections(const ConnectionTable& peers) : peers_(peers) {}

  /// Returns the peers that may not have seen the withdrawal yet. Issues a barrier for all, which takes microseconds.
  std::vector<SectionReader> readers(Withdrawn withdrawn) const;
  /// Returns whether that peer has left since, or is gone.
  bool has_left(const SectionReader& reader) const;
  /// Does the same without the barrier: returns whether any peer uses it, except the one at slot `except`. Valid for
  /// uses that the initiator claims or fences.
  bool is_used(Withdrawn withdrawn, std::uint32_t except = ConnectionTable::kNone) const noexcept;

 private:
  const ConnectionTable& peers_;
};

}  // namespace fairlead::shm
