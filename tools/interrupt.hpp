#pragma once
// Ctrl-C and SIGTERM ask for a clean end; the second one ends the process as usual.

namespace fairlead::tools {

/// From here on the first SIGINT or SIGTERM is only remembered.
void catch_interrupts();

bool is_interrupted() noexcept;

}  // namespace fairlead::tools
