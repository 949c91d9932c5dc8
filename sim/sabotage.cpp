#include "sim/sabotage.hpp"

#include <algorithm>

#include "wire/layout.hpp"
#include "wire/segment.hpp"

namespace fairlead::sim {
namespace {

void seal_again(std::span<std::byte> datagram) {
  wire::store<std::uint32_t>(datagram.data(), wire::at<std::uint32_t>(wire::kSegmentFields, "checksum"), 0);
  wire::add_checksum(datagram, {});
}

}  // namespace

void Sabotage::spoil(const path::Arrival& arrival) {
  if (is(Kind::none) || is(Kind::lost_event) || is(Kind::repeated_event) || is(Kind::late_write) ||
      is(Kind::skipped_sequence) || is(Kind::forgotten_arrival) || is(Kind::forgotten_answer))
    return;
  if (arrival.bytes.size() != arrival.datagram_size) return;  // only datagrams that arrive alone, for simplicity
  const auto frame = wire::decode(arrival.bytes);
  if (!frame || frame->header.kind != wire::Kind::data) return;
  if (strikes(Kind::changed_header) || strikes(Kind::forgotten_header)) {
    constexpr std::size_t kSequence = wire::at<std::uint32_t>(wire::kSegmentFields, "sequence");
    wire::store(arrival.bytes.data(), kSequence, frame->header.sequence.value + 1);
    if (!frame->is_sealed()) seal_again(arrival.bytes);
    return;
  }
  if (strikes(Kind::wrong_byte)) {
    arrival.bytes.back() ^= std::byte{1};
    seal_again(arrival.bytes);
    return;
  }
  if (kept_.size() == arrival.bytes.size() && strikes(Kind::repeated_message)) {
    std::ranges::copy(std::span(kept_).subspan(wire::kSegmentHeaderBytes),
                      arrival.bytes.begin() + wire::kSegmentHeaderBytes);
    seal_again(arrival.bytes);
  }
  kept_.assign(arrival.bytes.begin(), arrival.bytes.end());
}

}  // namespace fairlead::sim
