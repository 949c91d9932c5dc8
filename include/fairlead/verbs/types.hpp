#pragma once
// Types of the verbs interface. Enumerators have the same values as in the C verbs, so a shim can cast them, except
// SendOpcode::atomic_write.
//
// Errors. Set-up calls return Result<T>; Error::system_errno is always the errno that a C caller expects (EINVAL,
// ENOMEM, EBUSY, EFAULT, EOPNOTSUPP, EAGAIN). Data path calls (post, poll, arm) return 0 or a positive errno. They do
// not allocate or throw, and make no system calls except for the I/O itself.
//
// Threads. Any thread may make any call, also several threads on the same object. But no thread may use an object while
// another thread destroys it.

#include <array>
#include <cstdint>

namespace fairlead::verbs {

/// A port's address on the fabric, in network order: an IPv6 address, or ::ffff:a.b.c.d.
using Gid = std::array<std::uint8_t, 16>;

/// The remote queue pair number for a datagram to a multicast group.
inline constexpr std::uint32_t kMulticastQpn = 0xFF'FFFF;

enum class QpType : std::uint8_t {
  rc = 2,
  uc = 3,
  ud = 4,
  xrc_send = 9,   ///< as rc, to a target; each request names a shared receive queue of the target's domain
  xrc_recv = 10,  ///< a target: serves all shared receive queues of an XRC domain
};

enum class QpState : std::uint8_t { reset = 0, init, rtr, rts, sqd, sqe, err };

/// The type of a memory window: who may use it, and how it is bound.
enum class WindowType : std::uint8_t {
  type_1 = 1,  ///< all queue pairs of its domain; may be rebound at any time; the device chooses the key
  type_2 = 2,  ///< the queue pair that bound it; may be rebound after invalidation; the program chooses the key
};

/// Path MTU by its code; bytes = 128 << code.
enum class Mtu : std::uint8_t { bytes_256 = 1, bytes_512, bytes_1024, bytes_2048, bytes_4096 };
constexpr std::uint32_t bytes_of(Mtu mtu) {
  return 128U << static_cast<unsigned>(mtu);
}

/// Access rights of memory regions and queue pairs, as bits.
namespace access {
inline constexpr std::uint32_t local_write = 1U << 0;
inline constexpr std::uint32_t remote_write = 1U << 1;  ///< needs local_write
inline constexpr std::uint32_t remote_read = 1U << 2;
inline constexpr std::uint32_t remote_atomic = 1U << 3;  ///< needs local_write
inline constexpr std::uint32_t mw_bind = 1U << 4;        ///< regions: memory windows may be bound to the region
inline constexpr std::uint32_t zero_based = 1U << 5;     ///< addresses in requests start at 0
inline constexpr std::uint32_t on_demand = 1U << 6;      ///< no memory is pinned in any case; with a null address and
                                                         ///< length UINT64_MAX the region is the whole address space
inline constexpr std::uint32_t huge_pages = 1U << 7;     ///< ignored
inline constexpr std::uint32_t optional_range = 0x3FFU << 20;  ///< relaxed ordering and others: ignored
}  // namespace access

/// The address of a peer, for an address handle or a connected queue pair.
struct AddressVector {
  Gid dgid{};                    ///< the peer's GID, if is_global
  std::uint32_t flow_label = 0;  ///< stored, not used
  std::uint16_t dlid = 0;        ///< the peer's LID, unless is_global (personality ib only)
  std::uint8_t sgid_index = 0;
  std::uint8_t hop_limit = 0;
  std::uint8_t traffic_class = 0;
  std::uint8_t sl = 0;
  std::uint8_t src_path_bits = 0;
  std::uint8_t static_rate = 0;
  bool is_global = false;
  std::uint8_t port_num = 1;
};

/// Why a work request failed: WorkCompletion::vendor_err. explain() returns a sentence.
enum class Cause : std::uint32_t {
  none = 0,
  never_heard,           ///< the peer's address has never answered
  no_ack,                ///< the peer was heard, then stopped acknowledging
  peer_restarted,        ///< the peer's process has been replaced by a new one
  port_unreachable,      ///< no process listens at the peer's UDP port
  no_such_queue_pair,    ///< the peer's process has no queue pair of that number
  queue_pair_not_ready,  ///< the peer's queue pair is not in RTR, RTS, SQD or SQE
  sequence_mismatch,     ///< rq_psn here and sq_psn there differ, or the peer is connected to another queue pair
  no_answer,             ///< the peer acknowledged the request but never answered it
  no_receive_posted,     ///< RNR: no receive work request at the peer
  key_unknown,           ///< rkey or lkey names no region, a removed one, or one of another protection domain
  out_of_range,          ///< the range lies outside the region
  no_right,              ///< the access rights of region or queue pair do not permit the operation
  misaligned,            ///< the address of an atomic is not divisible by 8
  too_long,              ///< the message is longer than the receive, the MTU or the largest message
  wrong_queue_key,       ///< reserved
  bad_request,           ///< the work request is invalid on this queue pair
  peer_failed,           ///< the peer could not complete the request
  no_such_shared_queue,  ///< XRC: the target's domain has no shared receive queue of that number, or only one end is
                         ///< XRC
  host_ended,            ///< the host engine (fairleadd) has ended, and all queue pairs with it
  peer_ended,  ///< shared memory: the peer's process has ended, or either side closed the shared-memory connection
};

/// One sentence with cause and remedy, for people.
const char* explain(Cause cause) noexcept;

}  // namespace fairlead::verbs
