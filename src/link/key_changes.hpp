#pragma once
// New keys for a session in use: a handshake inside it, bound to the one before, with the keys that the keyring has
// now. Its first message is said again until the answer comes; nothing else waits for it (session_keys.hpp). The
// session's initiator begins it; the other end asks for it, by a first message that is empty.
//
// How much keys may do is no bound for what is in flight meanwhile: a peer that answers in time loses nothing. One that
// does not is given up after a while, and keys that have done what no keys should do are not used any more.
//
// Each beginning has a number, which the answerer sees grow: a first message that comes late must not undo a change
// that its sender has gone on from.

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

  /// After something was sealed: whether the keys have done enough, or too much.
  void watch(Peer& peer, base::Instant now);
  /// They have done what no keys should do: the session has to end.
  static bool are_worn_out(const SealedSession& session, base::Instant now);
  /// The time of `change_at` has come, and they are not worn out.
  void change(Peer& peer, base::Instant now);
  void on_rekey(Peer& peer, const wire::Frame& frame, base::Instant now);
  void on_rekey_answer(Peer& peer, const wire::Frame& frame, base::Instant now);
  /// Both ends have the new keys.
  void settle(SealedSession& session, base::Instant now);

 private:
  bool begin(Peer& peer);
  std::optional<Refusal> answer(Peer& peer, const wire::Frame& frame, base::Instant now);

  LinkContext& context_;
  std::optional<SealSettings>& sealing_;
  AnswerBudget budget_;
};

}  // namespace fairlead::link
