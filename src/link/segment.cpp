#include "link/segment.hpp"

#include <algorithm>
#include <cstring>

#include "link/message.hpp"
#include "wire/record.hpp"

namespace fairlead::link {

void Segment::take_out(std::uint32_t index) {
  const auto end_of = [&](std::uint32_t begin) {
    const std::span rest(block->bytes.data() + begin, size - begin);
    return static_cast<std::uint32_t>(begin + wire::whole_bytes(wire::RecordReader(rest).next().bytes.size()));
  };
  std::uint32_t begin = wire::kSegmentHeaderBytes, end_before = begin;  // end of the record before, without padding
  for (std::uint32_t i = 0; i < index; ++i) {
    end_before = end_of(begin);
    begin = static_cast<std::uint32_t>(wire::aligned(end_before));
  }
  const auto next = static_cast<std::uint32_t>(wire::aligned(end_of(begin)));
  // Closes the gap in the bytes, in `kept` and in the bits of outcomes_wanted.
  const bool is_last = index + 1 == records;
  if (!is_last) std::memmove(block->bytes.data() + begin, block->bytes.data() + next, size - next);
  size = is_last ? end_before : size - (next - begin);
  std::copy(block->kept.begin() + index + 1, block->kept.begin() + records, block->kept.begin() + index);
  const std::uint32_t below = (std::uint32_t{1} << index) - 1;
  outcomes_wanted = (outcomes_wanted & below) | ((outcomes_wanted >> 1) & ~below);
  --records;
}

std::uint32_t Segment::find_cookie(std::uint64_t cookie) const {
  std::uint32_t index = 0;
  const auto is_it = [&](const Kept& record) { return record.cookie == cookie && record.owner == Outcome::kNobody; };
  while (index < records && !is_it(block->kept[index])) ++index;
  return index;
}

std::uint32_t Segment::find_number(std::uint32_t number) const {
  std::uint32_t index = 0;
  while (index < records && block->kept[index].number != number) ++index;
  return index;
}

void Segment::make_void() {
  wire::encode_void(message->envelope, {message->number, message->slot, message->size, 0},
                    head.data() + wire::kSegmentHeaderBytes);
  size = head_bytes = kHeadBytes;
  payload_bytes = piece_count = parts_sent = 0;
}

}  // namespace fairlead::link
