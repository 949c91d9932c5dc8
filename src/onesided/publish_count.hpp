#pragma once
// Versions for what an owner publishes to its peers. They come from here and never from what is published: peers can
// write there, too.

#include <cstdint>

namespace fairlead::onesided {

class PublishCount {
 public:
  /// Of a record that holds; the odd number before it says that the record is being changed.
  std::uint64_t next() noexcept { return publications_ += 2; }

 private:
  std::uint64_t publications_ = 0;
};

}  // namespace fairlead::onesided
