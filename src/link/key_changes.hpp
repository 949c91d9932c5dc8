#pragma once
// Replaces the keys of a session in use. A handshake inside the session is bound to the previous one and uses the keys
// that the keyring has now. The session's initiator begins it, and repeats its first message until the answer comes; no
// other traffic waits (session_keys.hpp). The responder asks for a change by an empty first message.
//
// The limits of keys do not stop traffic in flight: a peer that answers in time loses nothing. A peer that does not
// answer is given up after a while. Keys beyond the absolute limits are not used any more.
//
// Each attempt has a rising number. So a delayed first message cannot undo a change that its sender has already gone
// beyond.

#include <cstdint>
#include <optional>

#include "base/time.hpp"
#include "link/answer_budget.hpp"
#include "link/link_context.hpp"
#include "link/seal_settings.hpp"
#include "link/token_source.hpp"
#include "wire/segment.hpp"

namespace fairlead::link {

class KeyChanges {
 public:
  KeyChanges(LinkContext& context, std::optional<SealSettings>& sealing, TokenSource& secrets);

  /// Called after something was sealed: starts a change when the keys have reached a limit.
  void watch(Peer& peer, base::Instant now);
  /// Returns whether the keys are beyond their absolute limits or too long overdue; the session then has to end.
  static bool are_worn_out(const SealedSession& session, base::Instant now);
  /// Begins, repeats or requests the change when `change_at` has passed and the keys are not worn out.
  void change(Peer& peer, base::Instant now);
  void on_rekey(Peer& peer, const wire::Frame& frame, base::Instant now);
  void on_rekey_answer(Peer& peer, const wire::Frame& frame, base::Instant now);
  /// Completes the change once both ends have the new keys.
  void settle(SealedSession& session, base::Instant now);

 private:
  bool begin(Peer& peer);
  std::optional<Refusal> answer(Peer& peer, const wire::Frame& frame, base::Instant now);

  LinkContext& context_;
  std::optional<SealSettings>& sealing_;
  AnswerBudget budget_;
};

}  // namespace fairlead::link
