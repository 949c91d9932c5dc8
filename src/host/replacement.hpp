#pragma once
// Asks a host engine to be replaced (`fairleadd --replace`).

#include <string>

#include <fairlead/error.hpp>

namespace fairlead::host {

/// Asks the host engine at `file`, and returns when the next program has taken over. The text is the duration of the
/// interruption, such as "38.4 ms". Returns an error with the reason if the previous program continues, `silent` if
/// there is no answer within 10 s.
Result<std::string> ask_for_replacement(const std::string& file);

}  // namespace fairlead::host
