#pragma once
// Memory of this process that may go at any moment, because another thread unmaps it: the kernel copies, and tells.

#include <cstdint>

namespace fairlead::base {

/// False if not all of `from` is there to be read. Part of it may have been copied.
bool read_checked(void* to, const void* from, std::uint64_t bytes) noexcept;
/// False if not all of `to` is there to be written. Part of it may have been written.
bool write_checked(void* to, const void* from, std::uint64_t bytes) noexcept;

}  // namespace fairlead::base
