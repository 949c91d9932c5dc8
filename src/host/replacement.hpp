#pragma once
// Asking a host engine to be replaced (`fairleadd --replace`).

#include <string>

#include <fairlead/error.hpp>

namespace fairlead::host {

/// Of the one that listens at that file. Returns when the next program has taken over: how long nobody was served; or
/// why the one before it goes on.
Result<std::string> ask_for_replacement(const std::string& file);

}  // namespace fairlead::host
