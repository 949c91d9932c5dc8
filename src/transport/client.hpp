#pragma once
// Clients of an engine: messages, active messages, queue pairs. Each owns its state, and gives the transports words
// that come back to it: cookies of sent messages, and targets of messages arriving in chunks. A word tells the client;
// the rest of its bits belong to that client.

#include <concepts>
#include <cstdint>

#include "link/link.hpp"

namespace fairlead::transport {

enum class Client : std::uint8_t { messages = 0, active = 1, queue_pairs = 2 };

/// The word that a client gives the transports: the cookie of a message, or the target of one that arrives in chunks.
/// It names an object of the client by its place, and a number that distinguishes uses of the place. For queue pairs
/// `is_copied` marks a message that the transports have copied, and of which nothing else is kept.
struct Cookie {
  Client client = Client::messages;
  bool is_copied = false;
  std::uint32_t place = 0;  // below kPlaceEnd
  std::uint32_t number = 0;

  static constexpr std::uint32_t kPlaceEnd = 1U << 30;

  constexpr std::uint64_t word() const {
    const std::uint64_t kind = static_cast<std::uint64_t>(client) | (is_copied ? 1 : 0);
    return std::uint64_t{number} << 32 | kind << 30 | place;
  }
  static constexpr Cookie of(std::uint64_t word) {
    const auto kind = static_cast<std::uint32_t>(word >> 30) & 3;
    const bool is_of_pairs = kind >= static_cast<std::uint32_t>(Client::queue_pairs);
    return {.client = is_of_pairs ? Client::queue_pairs : static_cast<Client>(kind),
            .is_copied = is_of_pairs && (kind & 1) != 0,
            .place = static_cast<std::uint32_t>(word) & (kPlaceEnd - 1),
            .number = static_cast<std::uint32_t>(word >> 32)};
  }
  constexpr bool operator==(const Cookie&) const = default;
};

/// Returns the client of a message with this operation. The messages' client refuses unknown operations.
constexpr Client client_of(wire::Operation operation) {
  if (operation >= wire::Operation::pair_send && operation <= wire::Operation::pair_datagram)
    return Client::queue_pairs;
  const bool is_active = operation >= wire::Operation::active_request && operation <= wire::Operation::active_rejected;
  return is_active ? Client::active : Client::messages;
}

/// What the engine calls in a client. None of it calls the engine back.
template <typename T>
concept EngineClient = requires(T client, const T& at_rest, const link::Delivery& delivery, link::PeerHandle peer,
                                std::uint64_t target, Status status, base::Instant now) {
  client.deliver(delivery, now);
  /// A message that has arrived in part ends: its sender is lost, or took it back.
  client.end_arrival(target, status);
  client.end_peer(peer, status, now);
  { client.progress(now) } -> std::same_as<bool>;
  /// Returns whether something has to be sent that no local thread waits for; then another pass is needed.
  { at_rest.is_owing() } -> std::same_as<bool>;
};

}  // namespace fairlead::transport
