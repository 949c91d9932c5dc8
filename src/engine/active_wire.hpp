#pragma once
// The encoding of active messages in envelopes.

#include <cstdint>
#include <utility>

#include "engine/active.hpp"
#include "wire/envelope.hpp"

namespace fairlead::engine::active_wire {

inline wire::Operation operation_of(ActiveKind kind) {
  return static_cast<wire::Operation>(std::to_underlying(wire::Operation::active_request) + std::to_underlying(kind));
}
inline ActiveKind kind_of(wire::Operation operation) {
  return static_cast<ActiveKind>(std::to_underlying(operation) - std::to_underlying(wire::Operation::active_request));
}

/// Returns whether a message answers another one. All kinds except requests do. They carry the secret of the message
/// that they answer.
inline bool is_back(ActiveKind kind) {
  return kind != ActiveKind::request;
}
/// Returns whether it is the engine's notice of a refusal, which has no bytes.
inline bool is_notice(ActiveKind kind) {
  return kind == ActiveKind::returned || kind == ActiveKind::rejected;
}
/// Requests and replies have no status. Its place contains the head's length divided by 8, and whether the data is
/// placed.
struct Shape {
  std::uint16_t head = 0;
  bool is_placed = false;
};
inline constexpr std::uint8_t kPlacedBit = 0x80, kHeadMask = 0x7f;
static_assert(kActiveHeadMax / 8 < kHeadMask);
inline Shape shape_of(ActiveKind kind, std::uint8_t status) {
  if (is_notice(kind)) return {};
  return {static_cast<std::uint16_t>(8 * (status & kHeadMask)), (status & kPlacedBit) != 0};
}
inline std::uint8_t status_byte(const ActiveMessage& message) {
  if (is_notice(message.kind)) return std::to_underlying(message.status);
  return static_cast<std::uint8_t>(message.head / 8 | (message.is_placed ? kPlacedBit : 0));
}

/// Returns the value that the message shows to its target.
inline std::uint64_t access_of(const ActiveMessage& message) {
  return is_back(message.kind) ? message.reply_access : message.access;
}
/// Returns the secret that answers must carry. A notice shows none: it gets no answer, and its receiver may not have
/// been admitted.
inline std::uint64_t shown_secret(ActiveKind kind, std::uint64_t secret) {
  return is_notice(kind) ? 0 : secret;
}

}  // namespace fairlead::engine::active_wire
