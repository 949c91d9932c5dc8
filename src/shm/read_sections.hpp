#pragma once
// Who is in our memory. Peers carry out one-sided requests there by themselves, and say in the page of the two what
// they are at. Whoever withdraws something waits for those who are at it, and for nobody else.

#include <cstdint>
#include <vector>

#include "shm/connection_table.hpp"

namespace fairlead::shm {

/// A peer that was at something when it was withdrawn.
struct SectionReader {
  std::uint32_t slot = 0, generation = 0;
  std::uint64_t at = 0;
};

class ReadSections {
 public:
  explicit ReadSections(const ConnectionTable& peers) : peers_(peers) {}

  /// Who may not have seen yet that it was withdrawn. Makes a barrier for all, which takes microseconds.
  std::vector<SectionReader> readers(Withdrawn withdrawn) const;
  /// Whether that peer has left since, or is no more.
  bool has_left(const SectionReader& reader) const;
  /// The same without the barrier, of what initiators claim, or make a fence for: whether anybody is at it, but for the
  /// peer of one slot.
  bool is_used(Withdrawn withdrawn, std::uint32_t except = ConnectionTable::kNone) const noexcept;

 private:
  const ConnectionTable& peers_;
};

}  // namespace fairlead::shm
