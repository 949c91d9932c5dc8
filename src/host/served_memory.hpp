#pragma once
// The memory regions and windows of one application at the host engine.

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/foreign_descriptor.hpp"
#include "embedded/embedded_core.hpp"
#include "host/joined_memory.hpp"
#include "host/pair_domains.hpp"
#include "host/pair_layout.hpp"
#include "host/pairs_state.hpp"
#include "qp/pair_core.hpp"
#include "shm/memory.hpp"

namespace fairlead::host {

class ServedMemory {
 public:
  /// The memory that the application shares and that contains its regions.
  struct Shared {
    shm::Memory memory;
    base::ForeignDescriptor file;
    std::uint64_t bytes = 0;  // size of the memory
  };
  struct Region {
    std::uint32_t domain = 0;  // the application's number for it
    JoinedMemory joined;       // used if it has several pieces
    std::uint32_t pieces = 0;  // number of pieces of `joined`
    std::uint64_t bytes = 0;   // bytes of all its pieces
    // As named by the application:
    std::uint64_t skipped = 0, length = 0;
    std::vector<MemoryPiece> parts{};
  };
  using Pieces = std::span<const MemoryPiece>;

  /// `most` is how many bytes all regions may have; 0: no limit.
  ServedMemory(qp::PairCore& core, Shared shared, PairDomains& domains, std::uint64_t most)
      : core_(core), shared_(std::move(shared)), domains_(domains), most_(most) {}

  Result<PairAnswer> add_region(const PairCall& call, Pieces pieces);
  /// `before` receives the region's previous state. The caller passes it to forget() when the withdrawal is over.
  Result<qp::Withdrawal> begin_change_region(const PairCall& call, Pieces pieces, Region& before);
  Result<qp::Withdrawal> begin_remove_region(std::uint32_t key, Region& before);
  /// Subtracts the region from the limits.
  void forget(const Region& region);

  Result<PairAnswer> add_window(const PairCall& call);
  Result<PairAnswer> remove_window(const PairCall& call);
  Result<PairAnswer> unbind_windows(const PairCall& call);
  void remove_all_windows();

  // For the next program in this process.
  void save(ApplicationPairsState& state) const;
  Result<> restore(embedded::EmbeddedPairs& core, const ApplicationPairsState& state);

  /// Returns how many bytes all regions have, until nothing accesses them.
  std::uint64_t bytes() const noexcept { return bytes_; }
  /// Returns the keys of all regions.
  std::vector<std::uint32_t> keys() const;

 private:
  Result<qp::RegionPlan> plan_of(const PairCall& call, Pieces pieces, Region& region, std::uint64_t replaced = 0) const;
  Result<JoinedMemory> join(Pieces pieces, std::uint64_t bytes) const;
  void count(const Region& region);
  Result<> restore(embedded::EmbeddedPairs& core, const ServedRegionState& saved);

  qp::PairCore& core_;
  Shared shared_;
  PairDomains& domains_;
  std::unordered_map<std::uint32_t, Region> regions_;         // by key
  std::unordered_map<std::uint32_t, std::uint32_t> windows_;  // domain by key
  const std::uint64_t most_;
  std::uint64_t bytes_ = 0;          // of all regions, until nothing accesses them
  std::uint32_t joined_pieces_ = 0;  // of regions with several pieces, until nothing accesses them
  std::uint64_t joined_bytes_ = 0;   // of the same regions
};

}  // namespace fairlead::host
