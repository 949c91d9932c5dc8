#pragma once
// What two engines of a host tell each other once, over their Unix socket.

#include <array>
#include <cstdint>
#include <type_traits>

#include "base/socket_address.hpp"

namespace fairlead::shm {

/// Of the one who connects, with two descriptors: the pair's memory, and its doorbell. The answer has the same form,
/// with one: the other's doorbell. Whoever shows memory (arena_bytes) adds a descriptor of it.
struct Greeting {
  static constexpr std::uint64_t kMagic = 0x6d68'735f'6461'656c;  // "lead_shm"
  static constexpr std::uint32_t kVersion = 11;

  std::uint64_t magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint32_t ring_bytes = 0;
  std::array<std::uint8_t, 16> ip{};
  std::uint32_t scope = 0;
  std::uint16_t port = 0;
  std::uint16_t has_barriers = 0;
  std::uint64_t epoch = 0;
  std::uint64_t secrets[2] = {};   // of the two rings
  std::uint32_t doorbell_bit = 0;  // that the other shall set in the doorbell of whoever writes this
  std::uint32_t user = 0;          // of whoever writes this, as it knows itself
  std::uint64_t arena_bytes = 0;   // of the memory published; 0: none
  std::uint64_t identity = 0;      // where in its memory the nonce lies (shm/identity.hpp); 0: not to be reached
  std::uint64_t nonce[2] = {};
  std::uint64_t proof = 0;  // between different users (shm/proof.hpp)

  bool is_ours() const { return magic == kMagic && version == kVersion; }
  base::SocketAddress address() const { return {.ip = ip, .scope = scope, .port = port}; }
};
static_assert(sizeof(Greeting) == 112 && std::is_trivially_copyable_v<Greeting>);

}  // namespace fairlead::shm
