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

/// Returns why an application must leave whose post the engine has refused.
constexpr const char* fault_of_post(int error) {
  if (error == ENOMEM) return "it posted more than its queue can hold (ENOMEM)";
  if (error == EINVAL) return "it posted a request that its queue cannot take (EINVAL)";
  return "the engine refused its post";
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
