#pragma once
// What its owner takes away from peers while some of it is under way: a queue pair, or a region's memory. It has begun;
// it is over when nothing refers to it any more.

#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.hpp"
#include "qp/pair_handle.hpp"
#include "shm/read_sections.hpp"

namespace fairlead::qp {

struct Withdrawal {
  enum class Kind : std::uint8_t { nothing, pair, region };

  Kind kind = Kind::nothing;
  bool frees_pair = false;      // when it is quiet
  bool waits_for_quiet = true;  // else only for peers in our memory
  bool has_readers = false;     // they are known
  bool is_change = false;       // the region's key goes on, with other memory
  PairHandle pair;
  std::uint32_t key = 0;                      // of the region
  std::optional<std::uint32_t> remap{};       // its memory, which goes back to its place
  std::vector<shm::SectionReader> readers{};  // who may still be at it
  base::Instant force_at{};                   // then whoever holds it up is put out
};

}  // namespace fairlead::qp
