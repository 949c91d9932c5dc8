#pragma once
// Whether memory may be used for long: mapped, and writable where somebody will write.

#include <cstdint>

namespace fairlead::base {

/// 0, or the errno that says why not (EFAULT: not mapped, or not with that right). Touches the pages, as pinning would.
int probe_memory(const void* address, std::uint64_t length, bool is_written) noexcept;

}  // namespace fairlead::base
