#include "link/segment.hpp"

#include <cstring>

#include "link/message.hpp"
#include "wire/record.hpp"

namespace fairlead::link {

bool Segment::take_out(std::uint64_t cookie, bool& is_wanted) {
  std::uint32_t begin = wire::kSegmentHeaderBytes;
  std::uint32_t end_before = begin;  // end of the record before, without padding
  for (std::uint32_t i = 0; i < records; ++i) {
    const std::span rest(block->bytes.data() + begin, size - begin);
    const auto end =
        static_cast<std::uint32_t>(begin + wire::whole_bytes(wire::RecordReader(rest).next().bytes.size()));
    const auto next = static_cast<std::uint32_t>(wire::aligned(end));
    if (block->cookies[i] != cookie) {
      begin = next;
      end_before = end;
      continue;
    }
    // Closes the gap in the bytes, the cookies and the bits of outcomes_wanted.
    is_wanted = ((outcomes_wanted >> i) & 1) != 0;
    const bool is_last = i + 1 == records;
    if (!is_last) std::memmove(block->bytes.data() + begin, block->bytes.data() + next, size - next);
    size = is_last ? end_before : size - (next - begin);
    for (std::uint32_t j = i + 1; j < records; ++j) block->cookies[j - 1] = block->cookies[j];
    const std::uint32_t below = (std::uint32_t{1} << i) - 1;
    outcomes_wanted = (outcomes_wanted & below) | ((outcomes_wanted >> 1) & ~below);
    --records;
    return true;
  }
  return false;
}

void Segment::make_void() {
  wire::encode_void(message->envelope, {message->number, message->slot, message->size, 0},
                    head.data() + wire::kSegmentHeaderBytes);
  size = head_bytes = kHeadBytes;
  payload_bytes = piece_count = parts_sent = 0;
}

}  // namespace fairlead::link
