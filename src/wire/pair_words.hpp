#pragma once
// The words of a queue pair's envelope (docs/queue-pairs.md). A port names a queue pair and its incarnation; a key
// names a request and a region. The values of verdicts and flags are those on the wire.

#include <cstdint>

#include "wire/sequence.hpp"

namespace fairlead::wire {

/// Position of a request in the order of its direction.
using RequestSequence = SerialNumber<struct OfRequests>;

struct PairPort {
  static constexpr std::uint32_t kNumberMost = 0xFF'FFFF;
  // A number consists of the engine's index among the ports of its address, and the queue pair's index in that engine.
  static constexpr unsigned kIndexBits = 14;
  static constexpr std::uint32_t kPairs = 1U << kIndexBits, kEngines = (kNumberMost + 1) >> kIndexBits;

  std::uint32_t number = 0;      // of the queue pair, up to kNumberMost
  std::uint8_t incarnation = 0;  // its lower bits; 0 if they do not matter
};
constexpr std::uint32_t encode(PairPort port) {
  return port.number | std::uint32_t{port.incarnation} << 24;
}
constexpr PairPort decode_pair_port(std::uint32_t word) {
  return {word & PairPort::kNumberMost, static_cast<std::uint8_t>(word >> 24)};
}

struct RequestKey {
  RequestSequence sequence;
  std::uint32_t rkey = 0;
};
constexpr std::uint64_t encode(RequestKey key) {
  return std::uint64_t{key.sequence.value} << 32 | key.rkey;
}
constexpr RequestKey decode_request_key(std::uint64_t word) {
  return {{static_cast<std::uint32_t>(word >> 32)}, static_cast<std::uint32_t>(word)};
}

/// Envelope::flags of requests and datagrams.
namespace request_flags {
inline constexpr std::uint16_t imm = 1;
inline constexpr std::uint16_t solicited = 2;
inline constexpr std::uint16_t fetch_add = 4;
inline constexpr std::uint16_t acknowledges = 8;  // up to `a`, requests of the other direction
inline constexpr std::uint16_t invalidates = 16;  // a send that invalidates the memory window named by its key
inline constexpr std::uint16_t word = 64;         // a write of 8 bytes, stored atomically
inline constexpr std::uint16_t shared = 32;       // XRC: to the shared receive queue in SharedQueue
inline constexpr unsigned traffic_class_shift = 8;
}  // namespace request_flags

/// XRC: a request to a queue pair with shared receive queues carries the number of one. Its upper half is in the upper
/// half of the envelope's flags, its lower half in the status.
struct SharedQueue {
  static constexpr std::uint32_t kNumberMost = 0xFFFF;

  std::uint16_t flags = 0;
  std::uint8_t status = 0;

  /// Packs the flags and the status into a word; the word 0 means no shared queue. An impossible number becomes 0,
  /// which no queue has.
  static constexpr std::uint32_t word_of(std::uint32_t wanted) {
    const std::uint32_t number = wanted <= kNumberMost ? wanted : 0;
    return (number & 0xFF00) | request_flags::shared | (number & 0xFF) << 16;
  }
  static constexpr SharedQueue of_word(std::uint32_t word) {
    return {static_cast<std::uint16_t>(word), static_cast<std::uint8_t>(word >> 16)};
  }
  constexpr std::uint32_t number() const { return (flags & 0xFF00U) | status; }
};

/// The result of a request.
enum class Verdict : std::uint8_t { ack, rnr, invalid, access, operation, not_ready, go_back };
inline constexpr Verdict kVerdictLast = Verdict::go_back;

/// Envelope::flags of answers: the cause in the lower 8 bits, and this bit if the answer ends a read or an atomic.
inline constexpr std::uint16_t kCarriesResult = 1U << 8;

}  // namespace fairlead::wire
