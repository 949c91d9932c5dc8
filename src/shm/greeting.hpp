#pragma once
// The greeting that two engines of a host exchange once over their Unix socket.

#include <array>
#include <cstdint>
#include <type_traits>

#include "base/socket_address.hpp"

namespace fairlead::shm {

/// The connecting engine sends it with two descriptors: the pair's memory and its doorbell. The answer has the same
/// form with one descriptor: the doorbell of the other engine. An engine that shares memory (arena_bytes) adds a
/// descriptor of it. A descriptor of the sender's traced memory is only named: the receiver fetches it.
struct Greeting {
  static constexpr std::uint64_t kMagic = 0x6d68'735f'6461'656c;  // "lead_shm"
  static constexpr std::uint32_t kVersion = 12;

  std::uint64_t magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint32_t ring_bytes = 0;
  std::array<std::uint8_t, 16> ip{};
  std::uint32_t scope = 0;
  std::uint16_t port = 0;
  std::uint16_t has_barriers = 0;
  std::uint64_t epoch = 0;
  std::uint64_t secrets[2] = {};   // marks of the two rings
  std::uint32_t doorbell_bit = 0;  // the bit that the receiver shall set in the sender's doorbell
  std::uint32_t user = 0;          // the sender's user id as the sender sees it
  std::uint64_t arena_bytes = 0;   // size of the sender's shared memory; 0: none
  // Address of the nonce in the sender's process (shm/identity.hpp); 0: no cross-memory access.
  std::uint64_t identity = 0;
  std::uint64_t nonce[2] = {};
  std::uint64_t traced_bytes = 0;  // size of the sender's traced memory (shm/traced_memory.hpp); 0: none
  std::uint32_t traced_file = 0;   // its descriptor in the sender's process
  std::uint32_t reserved = 0;
  std::uint64_t proof = 0;  // between different users (shm/proof.hpp)

  bool is_ours() const { return magic == kMagic && version == kVersion; }
  base::SocketAddress address() const { return {.ip = ip, .scope = scope, .port = port}; }
};
static_assert(sizeof(Greeting) == 128 && std::is_trivially_copyable_v<Greeting>);

}  // namespace fairlead::shm
