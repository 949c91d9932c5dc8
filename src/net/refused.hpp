#pragma once
// The error result of a refused set-up call.

#include <expected>
#include <string>
#include <utility>

#include <fairlead/error.hpp>

namespace fairlead::net {

inline std::unexpected<Error> refused(Status status, std::string message) {
  return std::unexpected(Error{status, 0, std::move(message)});
}

/// The text for a call in the child of a fork() on an object that the parent made.
inline constexpr const char* kBeforeFork = "this was made before fork(): open a domain in the child, and make it there";

}  // namespace fairlead::net
