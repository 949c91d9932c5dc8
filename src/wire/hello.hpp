#pragma once
// What each side tells the other when a session opens: who it is, and what it can take.

#include <cstddef>
#include <cstdint>
#include <span>

#include "wire/sequence.hpp"
#include "wire/ticks.hpp"

namespace fairlead::wire {

struct Hello {
  std::uint64_t epoch = 0;         // of the engine: another one is another life
  std::uint64_t token = 0;         // to be carried by every segment towards the sender of this
  std::uint64_t window_bytes = 0;  // what may be in flight towards the sender of this
  Sequence initial_sequence;       // of the first data segment of the sender of this
  std::uint32_t datagram_size_max = 0;
  std::uint32_t window_segments = 0;
  std::uint32_t reassembly_slots = 0;  // chunked messages that may be open at once
  Ticks ack_after;                     // how long an ACK may be delayed
  std::uint32_t slot = 0;              // goes with the token; no secret

  bool operator==(const Hello&) const = default;
};

void encode(const Hello& hello, std::byte* to);

/// Reads kHelloBytes; the values may be impossible.
Hello read_hello(std::span<const std::byte> payload);

bool is_possible(const Hello& hello);

/// The payload of a hello_retry: kRetryBytes.
void encode_retry(std::uint64_t cookie, std::byte* to);
std::uint64_t read_retry(std::span<const std::byte> payload);

/// The payload of a hello_refused: kRefusedBytes. What the reasons mean is not the wire's affair.
void encode_refused(std::uint64_t reason, std::byte* to);
std::uint64_t read_refused(std::span<const std::byte> payload);

/// What a hello says in the clear of where its answer goes. A sealed one says it before its handshake, in
/// kSealedHelloBytes.
struct ReturnAddress {
  std::uint32_t slot = 0;
  std::uint64_t token = 0;
};
void encode(const ReturnAddress& address, std::byte* to);
ReturnAddress read_return_address(std::span<const std::byte> hello, bool is_sealed);

/// What a sealed hello and its answer hold inside: kSealedInnerBytes.
struct SealedInner {
  Hello hello;
  std::uint64_t session = 0;  // token of the session that the sender of this still has with its receiver; 0: none
};
void encode(const SealedInner& inner, std::byte* to);
SealedInner read_sealed_inner(std::span<const std::byte> bytes);

}  // namespace fairlead::wire
