#pragma once
// Maps a port number to its slot in O(1): two levels of 4096 entries, the second allocated on first use. Port numbers
// have at most 24 bits.

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/slab.hpp"

namespace fairlead::engine {

class PortTable {
 public:
  static constexpr std::uint32_t kNumberMax = (1U << 24) - 1;
  static constexpr std::uint32_t kNone = base::Slab<int>::kNone;

  std::uint32_t find(std::uint32_t number) const {
    const std::uint32_t upper = number / kRow;
    if (upper >= rows_.size() || !rows_[upper]) return kNone;
    return (*rows_[upper])[number % kRow];
  }

  void set(std::uint32_t number, std::uint32_t slot) {
    const std::uint32_t upper = number / kRow;
    if (upper >= rows_.size()) rows_.resize(upper + 1);
    if (!rows_[upper]) {
      rows_[upper] = std::make_unique<Row>();
      rows_[upper]->fill(kNone);
    }
    (*rows_[upper])[number % kRow] = slot;
  }

 private:
  static constexpr std::uint32_t kRow = 4096;
  using Row = std::array<std::uint32_t, kRow>;
  std::vector<std::unique_ptr<Row>> rows_;
};

}  // namespace fairlead::engine
