#include "wire/part.hpp"

#include "wire/segment.hpp"

namespace fairlead::wire {

void encode_part(std::uint16_t index, std::uint16_t count, std::uint32_t payload_bytes, std::byte* to) {
  store(to, at<std::uint16_t>(kPartFields, "index"), index);
  store(to, at<std::uint16_t>(kPartFields, "count"), count);
  store(to, at<std::uint32_t>(kPartFields, "whole_bytes"), payload_bytes);
}

Part read_part(std::span<const std::byte> payload) {
  const std::byte* from = payload.data();
  return {.index = load<std::uint16_t>(from, at<std::uint16_t>(kPartFields, "index")),
          .count = load<std::uint16_t>(from, at<std::uint16_t>(kPartFields, "count")),
          .payload_bytes = load<std::uint32_t>(from, at<std::uint32_t>(kPartFields, "whole_bytes")),
          .bytes = payload.subspan(kPartBytes)};
}

bool is_possible(const Part& part) {
  if (part.count < 2 || part.count > kPartsMost || part.index >= part.count) return false;
  if (part.payload_bytes > kDatagramSizeMost - kSegmentHeaderBytes || part.bytes.size() >= part.payload_bytes)
    return false;
  const std::uint64_t length = part.bytes.size(), others = part.count - 1U, whole = part.payload_bytes;
  // The last part is the rest of the payload, and not longer than the others, which have one length.
  if (part.index == others) return (whole - length) % others == 0 && (whole - length) / others >= length;
  return length * others < whole && whole <= length * part.count;
}

}  // namespace fairlead::wire
