#pragma once
// A withdrawal that has begun: of a queue pair, or of a region's memory, while messages or local peers may still use
// it. It is complete when nothing refers to the object any more.

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
  bool frees_pair = false;      // frees the queue pair at the end
  bool waits_for_quiet = true;  // waits for messages in flight; else only for readers
  bool has_readers = false;     // `readers` is known
  bool is_change = false;       // the key stays valid, with other memory
  PairHandle pair;
  std::uint32_t key = 0;                      // of the region
  std::optional<std::uint32_t> remap{};       // the region's range in the arena, which is moved back
  std::vector<shm::SectionReader> readers{};  // local peers that may still access it
  base::Instant force_at{};                   // then the peers that delay it are expelled
};

}  // namespace fairlead::qp
