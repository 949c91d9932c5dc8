#pragma once
// The memory of one message: pieces of registered memory and their regions. Or a copy of it, which lives as long as any
// list that has it.

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include <fairlead/verbs/device.hpp>

#include "base/ensure.hpp"
#include "qp/permit.hpp"

namespace fairlead::qp {

/// Most SGEs of a work request.
inline constexpr std::uint32_t kSgesMax = 32;
static_assert(verbs::DeviceLimits{}.max_sge <= kSgesMax && verbs::DeviceLimits{}.max_srq_sge <= kSgesMax);

class GatherList {
 public:
  static constexpr std::uint32_t kNoRegion = ~0U;

  GatherList() {}  // leaves the arrays uninitialised: only the first count_ elements are valid

  void clear() {
    count_ = 0;
    copy_.reset();
  }
  void add(const Permit& permit) { add(permit.range(), permit.slot()); }
  /// Adds memory that is in no region.
  void add(iovec piece) { add(piece, kNoRegion); }
  void keep(std::shared_ptr<std::byte> copy) { copy_ = std::move(copy); }
  std::byte* copy() const { return copy_.get(); }

  bool is_empty() const { return count_ == 0; }
  std::span<const iovec> pieces() const { return {pieces_.data(), count_}; }
  std::span<const std::uint32_t> regions() const { return {regions_.data(), count_}; }

 private:
  void add(iovec piece, std::uint32_t region) {
    ENSURE(count_ < kSgesMax, "a message of more than {} pieces", kSgesMax);
    pieces_[count_] = piece;
    regions_[count_++] = region;
  }

  std::uint32_t count_ = 0;
  std::array<iovec, kSgesMax> pieces_;
  std::array<std::uint32_t, kSgesMax> regions_;
  std::shared_ptr<std::byte> copy_;
};

}  // namespace fairlead::qp
