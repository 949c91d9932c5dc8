#pragma once
// What each side tells the other when a session opens: its identity and its limits.

#include <cstddef>
#include <cstdint>
#include <span>

#include "wire/sequence.hpp"
#include "wire/ticks.hpp"

namespace fairlead::wire {

struct Hello {
  std::uint64_t epoch = 0;         // of the engine; a new one means that it has restarted
  std::uint64_t token = 0;         // carried by every segment to the sender of this hello
  std::uint64_t window_bytes = 0;  // that may be in flight to the sender of this hello
  Sequence initial_sequence;       // of its first data segment
  std::uint32_t datagram_size_max = 0;
  std::uint32_t window_segments = 0;
  std::uint32_t reassembly_slots = 0;  // chunked messages that may be open to it at once
  Ticks ack_after;                     // how long an ACK may be delayed
  std::uint32_t slot = 0;              // goes with the token; not secret

  bool operator==(const Hello&) const = default;
};

void encode(const Hello& hello, std::byte* to);

/// Reads kHelloBytes; the values may be impossible.
Hello read_hello(std::span<const std::byte> payload);

bool is_possible(const Hello& hello);

/// Payload of a hello_retry: kRetryBytes.
void encode_retry(std::uint64_t cookie, std::byte* to);
std::uint64_t read_retry(std::span<const std::byte> payload);

/// Payload of a hello_refused: kRefusedBytes. seal::Refused defines the reasons.
void encode_refused(std::uint64_t reason, std::byte* to);
std::uint64_t read_refused(std::span<const std::byte> payload);

/// The part of a hello that tells, in the clear, where its answer goes. A sealed hello carries it before its handshake
/// message, in kSealedHelloBytes.
struct ReturnAddress {
  std::uint32_t slot = 0;
  std::uint64_t token = 0;
};
void encode(const ReturnAddress& address, std::byte* to);
ReturnAddress read_return_address(std::span<const std::byte> hello, bool is_sealed);

/// The encrypted content of a sealed hello and of its answer: kSealedInnerBytes.
struct SealedInner {
  Hello hello;
  std::uint64_t session = 0;  // token of the session that the sender still has with the receiver; 0: none
};
void encode(const SealedInner& inner, std::byte* to);
SealedInner read_sealed_inner(std::span<const std::byte> bytes);

}  // namespace fairlead::wire
