#pragma once
// Connection set-up. Before two programs use verbs, they exchange the address of a queue pair and the memory that the
// other side may access. Both are small values that programs send as bytes: over a socket, in a file or in a message.
//
//   exchange(socket, own)   over a connected stream socket: both ends call it, each receives the other's bytes
//   connect(pair, theirs)   RESET -> INIT -> RTR -> RTS, with settings that suit most programs

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <fairlead/error.hpp>
#include <fairlead/time.hpp>
#include <fairlead/verbs/memory.hpp>
#include <fairlead/verbs/queue_pair.hpp>
#include <fairlead/verbs/types.hpp>

namespace fairlead::verbs {

/// The address of one queue pair and one piece of memory, for a peer: QueuePair::address(), MemoryRegion::remote().
struct Invitation {
  PairAddress pair{};
  RemoteMemory memory{};  ///< none: rkey 0
  bool operator==(const Invitation&) const = default;

  /// The format is the same on every machine. The first bytes identify the format and its version.
  static constexpr std::size_t kBytes = 48;
  [[nodiscard]] std::array<std::byte, kBytes> to_bytes() const noexcept;
  /// EINVAL: the bytes are not kBytes long, of another format or version, or name no queue pair. Whether address and
  /// key are valid shows only when they are used.
  [[nodiscard]] static Result<Invitation> from_bytes(std::span<const std::byte> bytes);
};

struct ConnectOptions {
  /// access::remote_*: what the peer may do through this queue pair, in regions that permit it too.
  std::uint32_t access = access::remote_write | access::remote_read | access::remote_atomic;
  Mtu path_mtu = Mtu::bytes_4096;
  std::uint8_t max_rd_atomic = 16;  ///< reads and atomics in flight, in each direction
  std::uint8_t timeout = 14;        ///< 4.096 us * 2^timeout, (retry_cnt + 1) times: 0.54 s for a peer that is gone
  std::uint8_t retry_cnt = 7;
  std::uint8_t rnr_retry = 7;  ///< 7: retries for ever
  std::uint8_t min_rnr_timer = 1;
};

/// Moves a queue pair of type RC or UC from RESET or INIT to RTS. EINVAL as modify(); the queue pair is then in RESET.
/// EINVAL also for type UD, which is connectionless. Until a receive is posted, the peer's sends wait (rnr_retry).
[[nodiscard]] Result<> connect(QueuePair& pair, const PairAddress& peer, const ConnectOptions& options = {});

/// Sends `own` over a connected stream socket, and returns the bytes that the peer sent with the same call. Each side
/// may send up to 64 KiB; the lengths may differ. The socket may be blocking or not, and stays unchanged. ETIMEDOUT:
/// the deadline passed. ECONNRESET: the peer closed the socket. EMSGSIZE: a side sends more than 64 KiB. EPROTO: the
/// peer uses another protocol. Other errnos are the kernel's.
[[nodiscard]] Result<std::vector<std::byte>> exchange(int socket, std::span<const std::byte> own, Instant deadline);

}  // namespace fairlead::verbs
