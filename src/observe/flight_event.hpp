#pragma once
// The events that a flight recorder stores. One table declares the kinds and their sentences.

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/time.hpp"

namespace fairlead::observe {

enum class FlightKind : std::uint8_t {
  // Amounts: consecutive events of a kind within a short time become one.
  submitted,
  sent,
  not_taken,
  resent_fast,
  resent_probe,
  resent_timeout,
  received,
  refused,
  failed,
  // Changes: the number is a Status.
  connected,
  lost,
  count_,
};

constexpr bool adds_up(FlightKind kind) noexcept {
  return kind < FlightKind::connected;
}

struct FlightKindRow {
  FlightKind kind;
  std::string_view sentence;  // {0}: the number, or the status in words; {1}: the size
};
inline constexpr std::array<FlightKindRow, static_cast<std::size_t>(FlightKind::count_)> kFlightKinds{{
    {FlightKind::submitted, "submitted {0} messages, {1} bytes"},
    {FlightKind::sent, "sent {0} datagrams, {1} bytes"},
    {FlightKind::not_taken, "the path had no room for {0} datagrams, {1} bytes"},
    {FlightKind::resent_fast, "sent {0} segments again: later ones were acknowledged"},
    {FlightKind::resent_probe, "sent {0} segments again to ask for an acknowledgement"},
    {FlightKind::resent_timeout, "sent {0} segments again after a timeout"},
    {FlightKind::received, "received {1} bytes, {0} segments acknowledged"},
    {FlightKind::refused, "refused {0} of the received datagrams"},
    {FlightKind::failed, "ended {0} operations without success"},
    {FlightKind::connected, "connected"},
    {FlightKind::lost, "gave the peer up: {0}"},
}};

/// Four fit into a cache line, and none crosses its end.
struct alignas(16) FlightEvent {
  static constexpr std::uint64_t kNumberMax = (1U << 24) - 1;

  base::Instant at;
  std::uint32_t size = 0;  // saturates at its maximum
  std::uint32_t number_and_kind = 0;

  FlightEvent() = default;
  FlightEvent(base::Instant when, FlightKind kind, std::uint64_t number, std::uint64_t bytes) noexcept
      : at(when),
        size(static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, UINT32_MAX))),
        number_and_kind(static_cast<std::uint32_t>(std::min(number, kNumberMax) << 8) |
                        static_cast<std::uint32_t>(kind)) {}

  FlightKind kind() const noexcept { return static_cast<FlightKind>(number_and_kind & 0xff); }
  std::uint32_t number() const noexcept { return number_and_kind >> 8; }
  std::string to_string() const;
};
static_assert(sizeof(FlightEvent) == 16);

}  // namespace fairlead::observe
