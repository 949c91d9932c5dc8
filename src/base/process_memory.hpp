#pragma once
// The memory mappings of this process, and its number of threads, from the kernel.

#include <cstddef>
#include <cstdint>
#include <span>

namespace fairlead::base {

/// Returns the number of threads; 0 if the kernel does not tell.
unsigned thread_count() noexcept;

/// Returns whether all of this memory is mapped and readable, and writable if it `is_written`. Touches none of it.
bool is_mapped(std::span<const std::byte> memory, bool is_written) noexcept;

/// Returns whether all of these pages are private memory, readable and writable, and not a stack. They may not be
/// mapped from a file, except from our own anonymous ones of which every page was copied.
bool is_private_memory(std::span<const std::byte> pages) noexcept;

/// Returns whether all of these pages are a shared mapping of that file, the first one at `offset`.
bool is_mapped_from(std::span<const std::byte> pages, int file, std::uint64_t offset) noexcept;

/// Returns whether any of these pages is mapped from that file, or that cannot be determined.
bool has_any_of(std::span<const std::byte> pages, int file) noexcept;

}  // namespace fairlead::base
