#pragma once
// Errors with which the host engine refuses calls about queue pairs.

#include <cerrno>
#include <expected>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <fairlead/error.hpp>

namespace fairlead::host {

inline std::unexpected<Error> refused(Status status, std::string message) {
  return std::unexpected(Error{status, to_errno(status), std::move(message)});
}

/// The call names an object that does not exist or is closed.
inline std::unexpected<Error> stale(const char* what) {
  return std::unexpected(Error{Status::stale, EINVAL, fmt::format("the host engine has no such {}", what)});
}

/// The call has parameters that our library never sends.
inline std::unexpected<Error> senseless(const char* what) {
  return refused(Status::invalid, fmt::format("invalid parameters of {}", what));
}

}  // namespace fairlead::host
