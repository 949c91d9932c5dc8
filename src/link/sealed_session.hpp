#pragma once
// What a peer has besides where its session is sealed: the keys, and a change of keys that is under way. And what is
// kept of a sealed hello: of ours until it is answered, of theirs until something proves it.

#include <array>
#include <memory>
#include <optional>
#include <span>

#include "base/time.hpp"
#include "link/half.hpp"
#include "seal/handshake.hpp"
#include "seal/session_keys.hpp"
#include "wire/layout.hpp"

namespace fairlead::link {

/// A message of a handshake, kept to be sent again as it was.
struct HandshakeMessage {
  std::array<std::byte, wire::kSealedHandshakeMost> bytes;
  std::size_t size = 0;
  std::span<const std::byte> span() const { return std::span(bytes).first(size); }
};

struct SealedSession {
  SealedSession(const seal::Handshake& handshake, seal::AeadMaker maker, bool is_ours, base::Instant now)
      : keys(handshake.keys(maker)), binding(handshake.hash()), is_initiator(is_ours), keyed_at(now) {}

  seal::SessionKeys keys;
  seal::Hash binding;            // of the handshake that made the current keys
  bool is_initiator;             // of the session, and so of every change of its keys
  base::Instant keyed_at;        // when they were made
  seal::PublicKey greeted_by{};  // as responder: the ephemeral key of the hello that it began with

  // A change of keys (key_changes.hpp). The initiator has `change` while it waits for the answer; the responder has
  // `next_binding` from its answer until the first segment under the new keys. `message` is what either sends; the
  // responder asks for a change by an empty one.
  std::optional<seal::Handshake> change;
  std::optional<seal::Hash> next_binding;
  seal::PublicKey changed_by{};  // the ephemeral key that was answered
  HandshakeMessage message;
  bool owes_message = false;
  bool is_message_first() const { return is_initiator || message.size == 0; }
  std::uint32_t times_sent = 0;            // `message`
  std::uint64_t change_number = 0;         // of the change begun, or answered, last
  base::Instant change_at = base::kNever;  // when it has to be looked at
  base::Instant due_since = base::kNever;  // the keys should have been changed since...
  std::uint64_t segments_when_due = 0;     // ...they had done so much
};

/// Our sealed hello, while a session is being opened or an open one is doubted.
struct SealedHello {
  seal::Handshake handshake;
  Half ours;
  HandshakeMessage message;
};

/// A sealed hello of theirs that was answered.
struct SealedCandidate {
  std::unique_ptr<SealedSession> session;
  HandshakeMessage answer;
};

}  // namespace fairlead::link
