#pragma once
// The first Ctrl-C or SIGTERM requests a clean end; the second one ends the process as usual.

namespace fairlead::tools {

/// Installs the handlers: from here on, the first SIGINT or SIGTERM only sets a flag.
void catch_interrupts();

bool is_interrupted() noexcept;

}  // namespace fairlead::tools
