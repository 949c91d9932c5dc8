#pragma once
// References name messages until they end. A reference is the address of the message's object. Objects never move while
// the link lives, and their contents tell whether the message is still the one meant. The low bit tells the kind of
// object.

#include <cstdint>

#include "link/link.hpp"
#include "link/message.hpp"
#include "link/segment.hpp"

namespace fairlead::link {

static_assert(alignof(Segment) > 1 && alignof(Message) > 1);

inline Reference reference_to(const Segment& segment) {
  return reinterpret_cast<std::uintptr_t>(&segment) | 1;
}
inline Reference reference_to(const Message& message) {
  return reinterpret_cast<std::uintptr_t>(&message);
}
/// Returns null if the reference names no segment.
inline Segment* segment_of(Reference reference) {
  return (reference & 1) != 0 ? reinterpret_cast<Segment*>(reference & ~Reference{1}) : nullptr;
}
inline Message* message_of(Reference reference) {
  return (reference & 1) == 0 ? reinterpret_cast<Message*>(reference) : nullptr;
}

/// Short messages with an owner also have a name that peers and applications may learn: the segment's room, the number
/// of the message in the segment, and the count of rooms taken until then. A name is looked up, so any value is
/// harmless.
inline constexpr std::uint32_t kRoomBits = 24;
static_assert(Segment::kNumbersMax << kRoomBits <= kShortOfLink);

inline OperationHandle name_of(const Segment& segment, std::uint32_t number) {
  return {kShortSlots | kShortOfLink | number << kRoomBits | segment.room, segment.use};
}
/// Returns the name as the word that a message carries.
inline std::uint64_t word_of(const OperationHandle& name) {
  return std::uint64_t{name.generation} << 32 | name.slot;
}
inline std::uint32_t room_of(const OperationHandle& name) {
  return name.slot & ((std::uint32_t{1} << kRoomBits) - 1);
}
inline std::uint32_t number_of(const OperationHandle& name) {
  return name.slot >> kRoomBits & (Segment::kNumbersMax - 1);
}

}  // namespace fairlead::link
