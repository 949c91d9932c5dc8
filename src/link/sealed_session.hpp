#pragma once
// Additional state of a sealed session: its keys, and a change of keys under way. And sealed hellos: our own until it
// is answered, the peer's until a segment proves it.

#include <array>
#include <memory>
#include <optional>
#include <span>

#include "base/time.hpp"
#include "link/half.hpp"
#include "link/peer_state.hpp"
#include "seal/handshake.hpp"
#include "seal/session_keys.hpp"
#include "wire/layout.hpp"

namespace fairlead::link {

/// A handshake message, kept so that it can be repeated unchanged.
struct HandshakeMessage {
  std::array<std::byte, wire::kSealedHandshakeMost> bytes;
  std::size_t size = 0;
  std::span<const std::byte> span() const { return std::span(bytes).first(size); }
};

struct SealedSession {
  SealedSession(const seal::Handshake& handshake, seal::AeadMaker maker, bool is_ours, base::Instant now)
      : keys(handshake.keys(maker)), binding(handshake.hash()), is_initiator(is_ours), keyed_at(now) {}

  SealedSession(const SealedState& saved, seal::AeadMaker maker);
  /// The state for the next program in this process.
  SealedState save() const;

  seal::SessionKeys keys;
  seal::Hash binding;            // hash of the handshake that made the current keys
  bool is_initiator;             // of the session, and so of every change of its keys
  base::Instant keyed_at;        // when the current keys were made
  seal::PublicKey greeted_by{};  // responder only: the ephemeral key of the hello that began the session

  // A change of keys (key_changes.hpp). The initiator holds `change` while it waits for the answer. The responder holds
  // `next_binding` from its answer until the first segment under the new keys. `message` is what either side sends; an
  // empty one is the responder's request for a change.
  std::optional<seal::Handshake> change;
  std::optional<seal::Hash> next_binding;
  seal::PublicKey changed_by{};  // ephemeral key of the message answered last
  HandshakeMessage message;
  bool owes_message = false;
  bool is_message_first() const { return is_initiator || message.size == 0; }
  std::uint32_t times_sent = 0;            // how often `message` was sent
  std::uint64_t change_number = 0;         // of the change begun or answered last
  base::Instant change_at = base::kNever;  // when the change is due for its next step
  base::Instant due_since = base::kNever;  // since when the keys are due for a change
  std::uint64_t segments_when_due = 0;     // segments under these keys at that time
};

/// This side's sealed hello, while a session is being opened or an open one is doubted.
struct SealedHello {
  seal::Handshake handshake;
  Half ours;
  HandshakeMessage message;
};

/// An answered sealed hello of the peer.
struct SealedCandidate {
  std::unique_ptr<SealedSession> session;
  HandshakeMessage answer;
};

}  // namespace fairlead::link
