#pragma once
// How active messages stand in envelopes.

#include <cstdint>
#include <utility>

#include "engine/active.hpp"
#include "wire/envelope.hpp"

namespace fairlead::engine::active_wire {

// The envelope's last word: the head's length, whether the data is placed, and what replies must carry.
inline constexpr std::uint64_t kHeadMask = 0xffff;
inline constexpr std::uint64_t kPlacedBit = 1ULL << 16;

inline std::uint64_t last_word(const ActiveMessage& message, std::uint32_t reply_access) {
  return message.head | (message.is_placed ? kPlacedBit : 0) | std::uint64_t{reply_access} << 32;
}

inline wire::Operation operation_of(ActiveKind kind) {
  return static_cast<wire::Operation>(std::to_underlying(wire::Operation::active_request) + std::to_underlying(kind));
}
inline ActiveKind kind_of(wire::Operation operation) {
  return static_cast<ActiveKind>(std::to_underlying(operation) - std::to_underlying(wire::Operation::active_request));
}

/// All but requests answer something: they show the secret that came with it, and nobody answers them but replies.
inline bool is_back(ActiveKind kind) {
  return kind != ActiveKind::request;
}
/// The engine's word why something was not taken: it has no bytes.
inline bool is_notice(ActiveKind kind) {
  return kind == ActiveKind::returned || kind == ActiveKind::rejected;
}
/// What the message shows to its target.
inline std::uint64_t access_of(const ActiveMessage& message) {
  return is_back(message.kind) ? message.reply_access : message.access;
}

}  // namespace fairlead::engine::active_wire
