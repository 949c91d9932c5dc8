#pragma once
// Memory that an application lends to its engine. It is poisoned around its bounds and after its use. Lending it again
// detects writes beyond its bounds or after the end of its operation.

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sim/findings.hpp"
#include "sim/random.hpp"

namespace fairlead::sim {

/// A buffer of up to four pieces. The bytes are contiguous, so one look covers them.
class Region {
 public:
  explicit Region(std::size_t capacity);

  std::span<std::byte> bytes() { return std::span(memory_).subspan(kGuard, size_); }
  std::span<const iovec> pieces() const { return {pieces_.data(), pieces_.size()}; }

 private:
  friend class RegionPool;
  static constexpr std::size_t kGuard = 64;

  std::vector<std::byte> memory_;
  std::vector<iovec> pieces_;
  std::size_t size_ = 0;
};

/// The regions of one process life. Returned regions are poisoned and lent again, oldest first.
class RegionPool {
 public:
  explicit RegionPool(std::uint64_t seed) : random_(seed) {}

  std::unique_ptr<Region> lend(std::size_t size, Findings& findings);
  void give_back(std::unique_ptr<Region> region, Findings& findings);
  /// Checks all returned regions.
  void check(Findings& findings) const;

 private:
  static constexpr std::size_t kClasses = 40;
  static constexpr std::size_t kKeptBytesInClass = 4u << 20;
  static constexpr std::size_t kKeptInClassMax = 32;

  static void check_guards(const Region& region, Findings& findings);
  static void check_poison(const Region& region, Findings& findings);

  Random random_;
  std::vector<std::unique_ptr<Region>> free_[kClasses];  // by size class, oldest first
};

}  // namespace fairlead::sim
