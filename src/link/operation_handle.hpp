#pragma once
// The name of a submitted operation, as its submitter has it.

#include <cstdint>

#include "base/time.hpp"

namespace fairlead::link {

/// Index and generation. A late cancel finds that the generation has changed.
struct OperationHandle {
  std::uint32_t slot = ~0U;
  std::uint32_t generation = 0;
  base::Instant at{};  // time of submission by the engine's clock; unset if the engine had no need to know
  bool operator==(const OperationHandle&) const = default;
};

/// Slots from here on name short messages, which the transports keep; those with kShortOfLink are in the link.
inline constexpr std::uint32_t kShortSlots = 1U << 31;
inline constexpr std::uint32_t kShortOfLink = 1U << 30;

}  // namespace fairlead::link
