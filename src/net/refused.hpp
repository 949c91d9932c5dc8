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

}  // namespace fairlead::net
