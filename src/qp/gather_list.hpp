#pragma once
// Pieces of registered memory that make up one message, and the regions they lie in. Or a copy of them, which lives as
// long as a list that has it.

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

/// Most pieces of a work request.
inline constexpr std::uint32_t kSgesMax = 32;
static_assert(verbs::DeviceLimits{}.max_sge <= kSgesMax && verbs::DeviceLimits{}.max_srq_sge <= kSgesMax);

class GatherList {
 public:
  static constexpr std::uint32_t kNoRegion = ~0U;

  GatherList() {}  // the arrays stay as they are: only `count_` of them count

  void clear() {
    count_ = 0;
    copy_.reset();
  }
  void add(const Permit& permit) { add(permit.range(), permit.slot()); }
  /// Memory of our own.
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
