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

}  // namespace fairlead::link
