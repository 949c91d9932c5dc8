#pragma once
// Words and numbers of the verbs face. Where the C verbs have a number for a word, it is the same number, so that a
// shim converts by a cast.
//
// Errors. Calls that set up return Result<T>; Error::system_errno is always the errno that a C caller expects (EINVAL,
// ENOMEM, EBUSY, EFAULT, EOPNOTSUPP, EAGAIN). Calls of the data path (post, poll, arm) return 0 or a positive errno,
// neither allocate nor throw, and never call the kernel but for the I/O itself.
//
// Threads. Every call may come from any thread, on the same object too; but nothing may be in use by one thread while
// another destroys it.

#include <array>
#include <cstdint>

namespace fairlead::verbs {

/// A port's address on the fabric, in network order: an IPv6 address, or ::ffff:a.b.c.d.
using Gid = std::array<std::uint8_t, 16>;

/// The remote queue pair number of a datagram to a group.
inline constexpr std::uint32_t kMulticastQpn = 0xFF'FFFF;

enum class QpType : std::uint8_t {
  rc = 2,
  uc = 3,
  ud = 4,
  xrc_send = 9,   ///< as rc, to a target; each request names a shared receive queue behind it
  xrc_recv = 10,  ///< a target: stands before all shared receive queues of an XRC domain
};

enum class QpState : std::uint8_t { reset = 0, init, rtr, rts, sqd, sqe, err };

/// Who may use a memory window, and how it is bound.
enum class WindowType : std::uint8_t {
  type_1 = 1,  ///< queue pairs of its domain; bound anew at any time, to a key that the device chooses
  type_2 = 2,  ///< the queue pair that bound it; to a key of the program, and again only after it was invalidated
};

/// Path MTU by its code; bytes = 128 << code.
enum class Mtu : std::uint8_t { bytes_256 = 1, bytes_512, bytes_1024, bytes_2048, bytes_4096 };
constexpr std::uint32_t bytes_of(Mtu mtu) {
  return 128U << static_cast<unsigned>(mtu);
}

/// Rights of memory regions and of queue pairs, as bits.
namespace access {
inline constexpr std::uint32_t local_write = 1U << 0;
inline constexpr std::uint32_t remote_write = 1U << 1;  ///< needs local_write
inline constexpr std::uint32_t remote_read = 1U << 2;
inline constexpr std::uint32_t remote_atomic = 1U << 3;  ///< needs local_write
inline constexpr std::uint32_t mw_bind = 1U << 4;        ///< regions: memory windows may be bound to them
inline constexpr std::uint32_t zero_based = 1U << 5;     ///< addresses in requests count from 0
inline constexpr std::uint32_t on_demand = 1U << 6;      ///< nothing is pinned anyway; with no address and length
                                                         ///< UINT64_MAX the region is all that is mapped when used
inline constexpr std::uint32_t huge_pages = 1U << 7;     ///< ignored
inline constexpr std::uint32_t optional_range = 0x3FFU << 20;  ///< relaxed ordering and others: ignored
}  // namespace access

/// Where to send: what an address handle or a connected queue pair holds.
struct AddressVector {
  Gid dgid{};                    ///< the peer, if is_global
  std::uint32_t flow_label = 0;  ///< kept, not used
  std::uint16_t dlid = 0;        ///< the peer, unless is_global (personality ib only)
  std::uint8_t sgid_index = 0;
  std::uint8_t hop_limit = 0;
  std::uint8_t traffic_class = 0;
  std::uint8_t sl = 0;
  std::uint8_t src_path_bits = 0;
  std::uint8_t static_rate = 0;
  bool is_global = false;
  std::uint8_t port_num = 1;
};

/// Why a work request failed: WorkCompletion::vendor_err. explain() has the sentence.
enum class Cause : std::uint32_t {
  none = 0,
  never_heard,           ///< no answer from the peer's address, ever
  no_ack,                ///< the peer was heard, then stopped acknowledging
  peer_restarted,        ///< the peer's process is another one now
  port_unreachable,      ///< nobody listens at the peer's UDP port
  no_such_queue_pair,    ///< the peer's process has no queue pair of that number
  queue_pair_not_ready,  ///< the peer's queue pair is not in RTR, RTS, SQD or SQE
  sequence_mismatch,     ///< rq_psn here and sq_psn there do not fit, or the peer is connected to somebody else
  no_answer,             ///< the peer acknowledged the request and never answered it
  no_receive_posted,     ///< RNR: no receive work request at the peer
  key_unknown,           ///< rkey or lkey names no region (any more), or one of another protection domain
  out_of_range,          ///< the region does not contain these addresses
  no_right,              ///< region or queue pair does not permit the operation
  misaligned,            ///< atomics need addresses divisible by 8
  too_long,              ///< longer than the receive, the MTU or the largest message
  wrong_queue_key,       ///< reserved
  bad_request,           ///< the work request makes no sense on this queue pair
  peer_failed,           ///< the peer could not finish it for reasons of its own
  no_such_shared_queue,  ///< XRC: the target's domain has no shared receive queue of that number; or only one end is
                         ///< XRC
  host_ended,            ///< the host engine (fairleadd) has ended, and all queue pairs with it
};

/// One sentence, cause and remedy, for people.
const char* explain(Cause cause) noexcept;

}  // namespace fairlead::verbs
