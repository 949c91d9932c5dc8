#pragma once
// How a message is named until it ends: by the object that it is in. Objects stay where they are while the link lives,
// and what is in them tells whether it is still the one that was meant; the low bit, which kind of object it is.

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
/// Null if it names none.
inline Segment* segment_of(Reference reference) {
  return (reference & 1) != 0 ? reinterpret_cast<Segment*>(reference & ~Reference{1}) : nullptr;
}
inline Message* message_of(Reference reference) {
  return (reference & 1) == 0 ? reinterpret_cast<Message*>(reference) : nullptr;
}

}  // namespace fairlead::link
