#pragma once
// A path moves opaque datagrams in batches between engines (docs/udp-path.md). It may lose, repeat and reorder them. It
// never blocks, never splits a datagram, and never delivers one with a wrong length. The link handles everything else.
//
// Threads: one thread at a time (the engine's lock); another thread may poll descriptor().

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <sys/uio.h>

#include "base/socket_address.hpp"
#include "base/time.hpp"

namespace fairlead::path {

struct FaultCounters;
class GroupSockets;

/// Several datagrams to one peer, sent in one call. The bytes of `pieces`, concatenated, are cut every `datagram_size`
/// bytes; the last datagram may be shorter. Limits: train_datagrams_max() and train_bytes_max().
struct Train {
  base::SocketAddress to;
  std::span<const iovec> pieces;
  std::uint32_t datagram_size = 0;
};

/// Received bytes: one datagram, or several of equal size from one sender that the kernel merged (GRO). The receiver
/// cuts them every `datagram_size` bytes; the last may be shorter. Valid until the next collect().
struct Arrival {
  base::SocketAddress from;
  std::span<std::byte> bytes;
  std::uint32_t datagram_size = 0;
};

/// A send error. ECONNREFUSED: the peer's port is closed (by ICMP). EHOSTUNREACH, ENETUNREACH, ...: there is no route.
/// EPERM: this host's firewall drops the datagram. EMSGSIZE: the datagram was too long. After EMSGSIZE
/// datagram_size_max() tells the current limit. A `size_hint` comes from an ICMP "too big" message of unknown origin;
/// longer datagrams might still pass.
struct Unreachable {
  base::SocketAddress to;
  int system_errno = 0;
  std::uint32_t size_hint = 0;
  bool is_prohibited = false;  // a firewall on the way, or the peer's, rejects the datagram (by ICMP)
  bool is_local = false;       // this host's kernel refused to send; else an ICMP message, which may be forged
};

/// Counters since the path was made; path_counter_rows.hpp describes each.
struct PathCounters {
  std::uint64_t datagrams_sent = 0, bytes_sent = 0, send_calls = 0;
  std::uint64_t datagrams_received = 0, bytes_received = 0, receive_calls = 0;
  std::uint64_t send_later = 0, send_failed = 0, send_too_big = 0;
  std::uint64_t send_no_buffers = 0, send_no_memory = 0, send_not_permitted = 0;
  std::uint64_t received_truncated = 0;
};

class Path {
 public:
  virtual ~Path() = default;

  /// The address at which peers reach this path.
  virtual base::SocketAddress address() const = 0;

  /// Sends trains in order and returns how many it took. The rest has to be sent later (back-pressure). A train that
  /// the network refuses counts as taken and lost.
  virtual std::size_t send(std::span<const Train> trains, base::Instant now) = 0;

  /// Collects arrived datagrams without waiting. Fills at most out.size() entries and returns how many.
  virtual std::size_t collect(std::span<Arrival> out, base::Instant now) = 0;

  /// Returns at most out.size() of the errors noticed since the last call.
  virtual std::size_t unreachable(std::span<Unreachable> out) = 0;

  /// Returns whether this host asked for the hardware address of the peer, and no host answered. It makes system calls:
  /// only for error texts.
  virtual bool is_host_missing(const base::SocketAddress&) const { return false; }

  /// The latest time of the next collect() although nothing arrives, because a path may hold datagrams back.
  virtual base::Instant next_deadline() const { return base::kNever; }

  /// Largest UDP payload of one datagram to `peer`, from the kernel's MTU of the route.
  virtual std::uint32_t datagram_size_max(const base::SocketAddress& peer) = 0;

  /// Most bytes, and most datagrams, of one train.
  virtual std::uint32_t train_bytes_max() const = 0;
  virtual std::uint32_t train_datagrams_max() const = 0;

  /// Size of this path's receive buffer: what all peers together may have in flight towards this side.
  virtual std::uint64_t receive_buffer_bytes() const = 0;

  /// Hint: much traffic with this peer is expected (a UDP path may give it a connected socket). `false` ends it.
  virtual void set_hot(const base::SocketAddress& peer, bool is_hot) = 0;

  /// A descriptor that becomes readable (epoll) when collect() has something; -1 if there is none.
  virtual int descriptor() const = 0;
  /// The socket that owns the port, for the next program in this process; -1 if there is none.
  virtual int socket() const { return -1; }
  /// Hint: with false, nobody will poll descriptor() for some time, so it need not become readable; a UDP path's
  /// datagrams then cost the kernel less. Returns whether descriptor() can be relied on now.
  virtual bool set_watched(bool is_watched) { return is_watched; }

  /// Multicast groups at this address; null if the path has none. The first call opens them. Their datagrams make
  /// descriptor() readable.
  virtual GroupSockets* groups() { return nullptr; }

  virtual const PathCounters& counters() const = 0;
  /// Injected faults; null if the path injects none.
  virtual const FaultCounters* fault_counters() const { return nullptr; }
  virtual std::string_view name() const = 0;  // "udp", "sim", ...
};

}  // namespace fairlead::path
