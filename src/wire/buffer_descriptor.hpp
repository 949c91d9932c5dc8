#pragma once
// The descriptor of a buffer for bulk transfer. One transfer machine gives it to another by way of the application
// (docs/net.md, "Descriptors"). Little-endian, 64 bytes, the same on every host.
//
// It names the memory by address, port, the engine's epoch and a random key. The checksum detects accidents. A stranger
// cannot guess the epoch and the key, and a later run does not repeat them.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/socket_address.hpp"
#include "wire/layout.hpp"

namespace fairlead::wire {

inline constexpr std::array kBufferDescriptorFields{
    Field{"magic", 0, 4}, Field{"version", 4, 1},   Field{"queue", 5, 1},         Field{"udp_port", 6, 2},
    Field{"epoch", 8, 8}, Field{"key", 16, 8},      Field{"size", 24, 8},         Field{"ip", 32, 16},
    Field{"port", 48, 4}, Field{"reserved", 52, 4}, Field{"reserved_too", 56, 4}, Field{"checksum", 60, 4},
};
inline constexpr std::size_t kBufferDescriptorBytes = 64;
static_assert(is_dense(kBufferDescriptorFields) && size_of(kBufferDescriptorFields) == kBufferDescriptorBytes);

struct BufferDescriptor {
  base::SocketAddress engine;  // of the passive side; without a zone, which is valid only on its own host
  std::uint32_t port = 0;      // of the passive side: portal << 12 | tmid
  std::uint8_t queue = 0;      // of the passive buffer
  std::uint64_t epoch = 0;     // of the engine that made the key
  std::uint64_t key = 0;
  std::uint64_t size = 0;  // bytes

  bool operator==(const BufferDescriptor&) const = default;
};

/// The first fault found in bytes that should be a descriptor; the enumerators are in the order of checking.
enum class DescriptorFault : std::uint8_t { length, checksum, magic, version };

void encode(const BufferDescriptor& descriptor, std::span<std::byte, kBufferDescriptorBytes> to);

/// Checks length, checksum and form, but not the values of the fields.
std::optional<DescriptorFault> find_fault(std::span<const std::byte> bytes);

/// Reads the fields of bytes without fault; their values may be impossible.
BufferDescriptor read_descriptor(std::span<const std::byte> bytes);

/// Returns whether the fields other than `queue` can be those of a passive buffer.
bool is_possible(const BufferDescriptor& descriptor);

}  // namespace fairlead::wire
