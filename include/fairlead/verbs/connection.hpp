#pragma once
// What two programs tell each other before they use verbs: where a queue pair is, and memory that the other side may
// reach. Both are small values that go as bytes by whatever means the programs have: a socket, a file, a message.
//
//   exchange(socket, own)   a connected stream socket will do: both ends call it, each gets what the other gave
//   connect(pair, theirs)   RESET -> INIT -> RTR -> RTS, with settings that suit most

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

/// What a program tells its peer of one queue pair and one piece of memory: QueuePair::address(),
/// MemoryRegion::remote().
struct Invitation {
  PairAddress pair{};
  RemoteMemory memory{};  ///< none: rkey 0
  bool operator==(const Invitation&) const = default;

  /// The same on every machine; the first bytes name this format and its version.
  static constexpr std::size_t kBytes = 48;
  std::array<std::byte, kBytes> to_bytes() const noexcept;
  /// EINVAL: not kBytes long, of another format or version, or of no queue pair. Whether the rest is true only its use
  /// can tell.
  static Result<Invitation> from_bytes(std::span<const std::byte> bytes);
};

struct ConnectOptions {
  /// access::remote_*: what the peer may do through this queue pair, in regions that permit it too.
  std::uint32_t access = access::remote_write | access::remote_read | access::remote_atomic;
  Mtu path_mtu = Mtu::bytes_4096;
  std::uint8_t max_rd_atomic = 16;  ///< reads and atomics of ours at once, and of the peer's
  std::uint8_t timeout = 14;        ///< 4.096 us * 2^timeout, retry_cnt times: 0.54 s for a peer that is gone
  std::uint8_t retry_cnt = 7;
  std::uint8_t rnr_retry = 7;  ///< 7: waits for a receive for ever
  std::uint8_t min_rnr_timer = 1;
};

/// Takes a queue pair of type RC or UC from RESET or INIT to RTS. EINVAL as modify(), and the queue pair is in RESET
/// then; or of type UD, which is not connected. Until a receive is posted the peer's sends wait (rnr_retry).
Result<> connect(QueuePair& pair, const PairAddress& peer, const ConnectOptions& options = {});

/// Sends `own` through a connected stream socket and returns what the peer sent by the same call, of any length up to
/// 64 KiB: the two need not be equally long. Blocking or not, the socket stays as it was. ETIMEDOUT at the deadline,
/// ECONNRESET if the peer has gone, EMSGSIZE, EPROTO if it speaks another language, or what the kernel says.
Result<std::vector<std::byte>> exchange(int socket, std::span<const std::byte> own, Instant deadline);

}  // namespace fairlead::verbs
