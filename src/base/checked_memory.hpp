#pragma once
// Copies from and to memory of this process that another thread may unmap at any moment: the kernel copies, and reports
// failure.

#include <cstdint>

namespace fairlead::base {

/// Returns false if not all of `from` is readable; a part may have been copied.
bool read_checked(void* to, const void* from, std::uint64_t bytes) noexcept;
/// Returns false if not all of `to` is writable; a part may have been written.
bool write_checked(void* to, const void* from, std::uint64_t bytes) noexcept;

}  // namespace fairlead::base
