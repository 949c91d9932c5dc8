// Saves and restores a sealed session across programs (peer_state.hpp).

#include <algorithm>

#include "link/sealed_session.hpp"

namespace fairlead::link {

SealedSession::SealedSession(const SealedState& saved, seal::AeadMaker maker)
    : keys(saved.keys, maker),
      binding(saved.binding),
      is_initiator(saved.is_initiator),
      keyed_at(saved.keyed_at),
      greeted_by(saved.greeted_by),
      next_binding(saved.next_binding),
      changed_by(saved.changed_by),
      owes_message(saved.owes_message),
      change_number(saved.change_number),
      change_at(saved.change_at),
      due_since(saved.due_since),
      segments_when_due(saved.segments_when_due) {
  message.size = std::min(saved.message.size(), message.bytes.size());
  std::copy_n(saved.message.begin(), message.size, message.bytes.begin());
}

SealedState SealedSession::save() const {
  SealedState saved{.keys = keys.save(),
                    .binding = binding,
                    .is_initiator = is_initiator,
                    .keyed_at = keyed_at,
                    .greeted_by = greeted_by,
                    .changed_by = changed_by,
                    .next_binding = next_binding,
                    .message = {},
                    .owes_message = owes_message && !is_initiator,
                    .change_number = change_number,
                    .segments_when_due = segments_when_due,
                    .change_at = change_at,
                    .due_since = due_since};
  if (!is_initiator) saved.message.assign(message.span().begin(), message.span().end());
  return saved;
}

}  // namespace fairlead::link
