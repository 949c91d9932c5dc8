#pragma once
// Memory that a command points to: as with the kernel, a wrong pointer is EFAULT and no crash.

#include <cstddef>
#include <cstdint>
#include <span>

namespace fairlead::rdma_cm {

/// False if not all of it can be read, or written.
bool read_user(std::uint64_t from, std::span<std::byte> to);
bool write_user(std::uint64_t to, std::span<const std::byte> from);

}  // namespace fairlead::rdma_cm
