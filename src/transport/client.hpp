#pragma once
// Clients of an engine: messages, active messages, queue pairs. Each owns its state, and gives the transports words
// that come back to it: cookies of what it sent, targets of what arrives in chunks. A word says which client it belongs
// to; the rest of its bits are that client's.

#include <concepts>
#include <cstdint>

#include "link/link.hpp"

namespace fairlead::transport {

enum class Client : std::uint8_t { messages = 0, active = 1, queue_pairs = 2 };

/// The client stands in the upper two bits of a word's lower half. Queue pairs have both words with the upper bit.
inline constexpr std::uint64_t kQueuePairsMark = 1ULL << 31;
inline constexpr std::uint64_t kActiveMark = 1ULL << 30;

constexpr Client client_of(std::uint64_t word) {
  if ((word & kQueuePairsMark) != 0) return Client::queue_pairs;
  return (word & kActiveMark) != 0 ? Client::active : Client::messages;
}

/// To whom a message goes that begins with this envelope. What is no operation is refused by the messages' client.
constexpr Client client_of(wire::Operation operation) {
  if (operation >= wire::Operation::flow_send && operation <= wire::Operation::flow_datagram)
    return Client::queue_pairs;
  const bool is_active = operation >= wire::Operation::active_request && operation <= wire::Operation::active_rejected;
  return is_active ? Client::active : Client::messages;
}

/// What the engine calls of a client. Nothing of it calls the engine back.
template <typename T>
concept EngineClient = requires(T client, const T& at_rest, const link::Delivery& delivery, link::PeerHandle peer,
                                std::uint64_t target, Status status, base::Instant now) {
  client.deliver(delivery, now);
  /// The sender of a message that had begun to arrive is lost.
  client.end_arrival(target, status);
  client.end_peer(peer, status, now);
  { client.progress(now) } -> std::same_as<bool>;
  /// Whether something waits to leave that nobody here waits for; then a pass has to come.
  { at_rest.is_owing() } -> std::same_as<bool>;
};

}  // namespace fairlead::transport
