#pragma once
// Who is in our memory: peers carry out one-sided requests there by themselves, and say in the page of the two when
// they come and go. Whoever withdraws something waits for those who may not have seen it.

#include <cstdint>
#include <vector>

#include "shm/connection_table.hpp"

namespace fairlead::shm {

/// A peer that was in our arena when something in it was withdrawn.
struct SectionReader {
  std::uint32_t slot = 0, generation = 0;
  std::uint64_t visit = 0;
};

class ReadSections {
 public:
  explicit ReadSections(const ConnectionTable& peers) : peers_(peers) {}

  /// Who may not have seen yet what was withdrawn from the tables of the arena just now. Takes microseconds.
  std::vector<SectionReader> readers() const;
  /// Whether that peer has left since, or is no more.
  bool has_left(const SectionReader& reader) const;
  /// Whether a peer is at what it calls so, outside the arena. After it was withdrawn from the records.
  bool is_held(std::uint64_t name) const noexcept;

 private:
  static const PairSide* reader_of(const Connection& peer);

  const ConnectionTable& peers_;
};

}  // namespace fairlead::shm
