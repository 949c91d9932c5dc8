#pragma once
// Work requests: plain structures that the library reads during the post only. The memory that they name belongs to the
// queue pair until their completion.

#include <cstdint>
#include <span>

#include <fairlead/verbs/types.hpp>

namespace fairlead::verbs {

/// A piece of registered memory. `addr` counts from the region's iova. Laid out like ibv_sge.
struct Sge {
  std::uint64_t addr = 0;
  std::uint32_t length = 0;  ///< bytes
  std::uint32_t lkey = 0;
};
static_assert(sizeof(Sge) == 16);

enum class SendOpcode : std::uint8_t {
  write = 0,
  write_imm = 1,
  send = 2,
  send_imm = 3,
  read = 4,
  compare_swap = 5,
  fetch_add = 6,
  invalidate = 7,       ///< RC, UC: unbinds the window of type 2 with the key `rkey`
  bind_window = 8,      ///< RC, UC: binds a window as `binding` says
  send_invalidate = 9,  ///< RC, UC: a send that invalidates the peer's window with the key `rkey`
  atomic_write = 10,    ///< RC: stores 8 bytes atomically; the address is divisible by 8 (IBV_WR_ATOMIC_WRITE is 15)
};

/// The parameters of bind_window. Length 0 (type 1 only) unbinds the window.
struct WindowBinding {
  std::uint32_t window = 0;  ///< any key of the window
  std::uint32_t key = 0;     ///< its new key; the upper 24 bits stay the same
  std::uint32_t lkey = 0;    ///< of the region, which needs access::mw_bind
  std::uint32_t access = 0;  ///< remote rights, and zero_based
  std::uint64_t addr = 0;    ///< relative to the region's iova
  std::uint64_t length = 0;  ///< bytes
};

/// Bits of SendRequest::flags.
namespace send_flags {
inline constexpr std::uint32_t fence = 1U << 0;      ///< RC: starts after all earlier reads and atomics have completed
inline constexpr std::uint32_t signaled = 1U << 1;   ///< also a success generates a completion
inline constexpr std::uint32_t solicited = 1U << 2;  ///< the peer's completion is solicited: it also wakes waiters for
                                                     ///< solicited completions only
inline constexpr std::uint32_t inlined = 1U << 3;    ///< the data is copied during the call; lkeys are ignored
}  // namespace send_flags

struct SendRequest {
  std::uint64_t id = 0;  ///< WorkCompletion::wr_id
  std::span<const Sge> sges{};
  SendOpcode opcode = SendOpcode::send;
  std::uint32_t flags = 0;
  std::uint32_t imm = 0;          ///< opaque, delivered unchanged (network order by convention)
  std::uint32_t rkey = 0;         ///< write, read, atomics, invalidate, send_invalidate
  std::uint64_t remote_addr = 0;  ///< write, read, atomics
  std::uint64_t compare_add = 0;  ///< atomics
  std::uint64_t swap = 0;         ///< compare_swap

  // UD only
  const AddressVector* to = nullptr;  ///< read during the call: AddressHandle::vector()
  std::uint32_t remote_qpn = 0;
  std::uint32_t remote_qkey = 0;  ///< if its top bit is set, the queue pair's own key is used

  std::uint32_t remote_srqn = 0;  ///< xrc_send: SharedReceiveQueue::number() at the peer

  const WindowBinding* binding = nullptr;  ///< bind_window: read during the call
};

struct ReceiveRequest {
  std::uint64_t id = 0;
  std::span<const Sge> sges{};
};

}  // namespace fairlead::verbs
