#pragma once
// Remembers why add() refused an operation. add() returns only a status, which can have several causes. The reason is
// per thread, and is written only on refusal.

#include <fairlead/error.hpp>

namespace fairlead::net {

/// Returns `status`. `why` must be a string literal or live as long; null selects the general text of the status.
Status refuse_add(Status status, const char* why = nullptr) noexcept;
/// Returns the calling thread's last refusal; ok and an empty text if there was none.
Error last_refusal();

}  // namespace fairlead::net
