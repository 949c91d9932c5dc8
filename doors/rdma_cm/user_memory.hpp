#pragma once
// Access to memory that a command points to. As with the kernel, an invalid pointer causes EFAULT and no crash.

#include <cstddef>
#include <cstdint>
#include <span>

namespace fairlead::rdma_cm {

/// Return false unless all of it can be read or written.
bool read_user(std::uint64_t from, std::span<std::byte> to);
bool write_user(std::uint64_t to, std::span<const std::byte> from);

}  // namespace fairlead::rdma_cm
