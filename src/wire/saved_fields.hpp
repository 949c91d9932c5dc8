#pragma once
// Fields of wire types, for the state that is saved for the next program in this process (base/saved.hpp).

#include "wire/envelope.hpp"
#include "wire/hello.hpp"
#include "wire/sequence.hpp"
#include "wire/ticks.hpp"

namespace fairlead::wire {

template <typename Archive, typename Kind>
void fields(Archive& archive, SerialNumber<Kind>& number) {
  archive(number.value);
}
template <typename Archive>
void fields(Archive& archive, Ticks& ticks) {
  archive(ticks.value);
}
template <typename Archive>
void fields(Archive& archive, Hello& hello) {
  archive(hello.epoch, hello.token, hello.window_bytes, hello.initial_sequence, hello.datagram_size_max,
          hello.window_segments, hello.reassembly_slots, hello.ack_after, hello.slot);
}
template <typename Archive>
void fields(Archive& archive, Envelope& envelope) {
  archive(envelope.operation, envelope.status, envelope.flags, envelope.source_port, envelope.target_port, envelope.key,
          envelope.cookie, envelope.offset, envelope.a);
}

}  // namespace fairlead::wire
