#pragma once
// Versions for what an owner shows to its peers. They come from here and never from what is shown: peers can write
// there, too.

#include <cstdint>

namespace fairlead::shm {

class PublishCount {
 public:
  /// Of a record that holds; the odd number before it says that the record is being changed.
  std::uint64_t next() noexcept { return shows_ += 2; }

 private:
  std::uint64_t shows_ = 0;
};

}  // namespace fairlead::shm
