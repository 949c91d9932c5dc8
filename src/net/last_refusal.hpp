#pragma once
// Why add() refused: a status is all that a hot call answers, and has several causes. Kept per thread, and written on
// the way of refusals only.

#include <fairlead/error.hpp>

namespace fairlead::net {

/// The status itself. `why` lives for ever; null: what the status says of any add().
Status refuse_add(Status status, const char* why = nullptr) noexcept;
/// Of the calling thread; ok and empty if there was none.
Error last_refusal();

}  // namespace fairlead::net
