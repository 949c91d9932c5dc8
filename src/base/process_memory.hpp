#pragma once
// What this process has mapped, as the kernel tells it, and how many threads could be using it.

#include <cstddef>
#include <cstdint>
#include <span>

namespace fairlead::base {

/// Threads of this process; 0 if the kernel does not tell.
unsigned thread_count() noexcept;

/// Whether all of these whole pages are private memory, readable and writable, without a file (but for our own nameless
/// ones, of which every page was copied), and no stack.
bool is_private_memory(std::span<const std::byte> pages) noexcept;

/// Whether all of these whole pages are mapped, shared, from that file, the first at `offset`.
bool is_mapped_from(std::span<const std::byte> pages, int file, std::uint64_t offset) noexcept;

/// Whether that file is mapped anywhere in these pages, or it cannot be told.
bool has_any_of(std::span<const std::byte> pages, int file) noexcept;

}  // namespace fairlead::base
