#pragma once
// Version numbers for the records that an owner publishes. They are counted here and never read back from shared
// memory, to which peers can write.

#include <cstdint>

namespace fairlead::onesided {

class PublishCount {
 public:
  /// Returns the version of a complete record. The odd number before it marks the record as being changed.
  std::uint64_t next() noexcept { return publications_ += 2; }

 private:
  std::uint64_t publications_ = 0;
};

}  // namespace fairlead::onesided
