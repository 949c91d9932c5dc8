#pragma once
// Checks whether memory is mapped, and writable if it will be written.

#include <cstdint>

namespace fairlead::base {

/// Returns 0, or an errno (EFAULT: not mapped, or without that right). Touches the pages, as pinning would.
int probe_memory(const void* address, std::uint64_t length, bool is_written) noexcept;

}  // namespace fairlead::base
