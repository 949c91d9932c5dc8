#include "shm/ring.hpp"

namespace fairlead::shm {

// Prefetches the lines of the next block for writing, while the reader is still far behind them.
void RingWriter::want_next_block() noexcept {
  wanted_block_ = written_ / kBlockLines;
  const std::byte* block = at((wanted_block_ + 1) * kBlockLines);
  for (std::uint64_t line = 0; line < kBlockLines; ++line) base::prefetch_for_write(block + line * kRingLine);
}

}  // namespace fairlead::shm
