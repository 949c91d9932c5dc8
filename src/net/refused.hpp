#pragma once
// The answer to a set-up call that cannot be done.

#include <expected>
#include <string>
#include <utility>

#include <fairlead/error.hpp>

namespace fairlead::net {

inline std::unexpected<Error> refused(Status status, std::string message) {
  return std::unexpected(Error{status, 0, std::move(message)});
}

/// In the child of a fork(), of what its parent has made.
inline constexpr const char* kBeforeFork = "this was made before fork(): open a domain in the child, and make it there";

}  // namespace fairlead::net
