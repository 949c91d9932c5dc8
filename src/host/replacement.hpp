#pragma once
// Asks a host engine to be replaced (`fairleadd --replace`).

#include <string>

#include <fairlead/error.hpp>

namespace fairlead::host {

/// Asks the host engine at `file`, and returns when the next program has taken over. The text says how long the
/// interruption lasted. Returns an error if the previous program continues.
Result<std::string> ask_for_replacement(const std::string& file);

}  // namespace fairlead::host
