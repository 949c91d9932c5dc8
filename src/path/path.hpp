#pragma once
// A path moves opaque datagrams in batches between engines (docs/udp-path.md). It may lose, repeat and reorder them;
// it never blocks, never splits one and never hands up a damaged length. Everything else is the link's affair.
//
// Thread rule: one thread at a time (the engine's lock); descriptor() may be polled by another.

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

/// Several datagrams to one peer, handed over in one call. The bytes of `pieces`, end to end, are cut every
/// `datagram_size` bytes; the last datagram may be shorter. At most 64 datagrams and 65,000 bytes altogether
/// (see train_bytes_max() for what this path takes).
struct Train {
  base::SocketAddress to;
  std::span<const iovec> pieces;
  std::uint32_t datagram_size = 0;
};

/// Received bytes: one datagram, or several of equal size from the same sender that the kernel merged (GRO): cut it
/// every `datagram_size` bytes, the last may be shorter. Valid until the next collect().
struct Arrival {
  base::SocketAddress from;
  std::span<std::byte> bytes;
  std::uint32_t datagram_size = 0;
};

/// A peer's port answered that nobody listens (ECONNREFUSED, by ICMP), or the kernel has no way to it (EHOSTUNREACH,
/// ENETUNREACH, ...), or this host's firewall lets nothing out to it (EPERM), or the kernel does not send datagrams as
/// long as one that was to go there (EMSGSIZE): datagram_size_max() tells how long they may be now.
/// With `size_hint` that is said of the path (ICMP "too big"), and by whom is not known: datagrams of that length might
/// pass.
struct Unreachable {
  base::SocketAddress to;
  int system_errno = 0;
  std::uint32_t size_hint = 0;
};

/// What went out and came in since the path was made, and what did not; path_counter_rows.hpp says what each counts.
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

  /// Where peers reach this path.
  virtual base::SocketAddress address() const = 0;

  /// Sends trains in order; returns how many were taken. The rest is for later (back-pressure); a train that the
  /// network refuses counts as taken and lost.
  virtual std::size_t send(std::span<const Train> trains, base::Instant now) = 0;

  /// Collects what has arrived, without waiting; fills at most out.size() entries and returns how many.
  virtual std::size_t collect(std::span<Arrival> out, base::Instant now) = 0;

  /// Reports at most out.size() ICMP errors noticed since the last call.
  virtual std::size_t unreachable(std::span<Unreachable> out) = 0;

  /// When collect() has to be called again at the latest though nothing arrives: a path may hold datagrams back.
  virtual base::Instant next_deadline() const { return base::kNever; }

  /// Largest UDP payload of one datagram towards `peer`, from the kernel's knowledge of the route's MTU.
  virtual std::uint32_t datagram_size_max(const base::SocketAddress& peer) = 0;

  /// Most bytes one train may carry, and most datagrams.
  virtual std::uint32_t train_bytes_max() const = 0;
  virtual std::uint32_t train_datagrams_max() const = 0;

  /// Bytes that the receive buffer of this path can hold (what peers together may have in flight towards us).
  virtual std::uint64_t receive_buffer_bytes() const = 0;

  /// Hint: much traffic with this peer is expected (a UDP path may give it a connected socket); `false` gives it back.
  virtual void set_hot(const base::SocketAddress& peer, bool is_hot) = 0;

  /// A descriptor that becomes readable (epoll) when collect() would find something; -1 if there is none.
  virtual int descriptor() const = 0;
  /// The socket that has its port, for the next program in this process; -1: there is none.
  virtual int socket() const { return -1; }
  /// Hint: nobody will look at descriptor() for some time, and it need not become readable (a UDP path's datagrams
  /// then cost the kernel less); or somebody will from now on. False if it could not be done: it cannot be relied on.
  virtual bool set_watched(bool is_watched) { return is_watched; }

  /// Groups of hosts (IP multicast) at this address; null if the path has none. Opened by the first call. What comes
  /// makes descriptor() readable.
  virtual GroupSockets* groups() { return nullptr; }

  virtual const PathCounters& counters() const = 0;
  /// What was done to datagrams on purpose; null of an honest path.
  virtual const FaultCounters* fault_counters() const { return nullptr; }
  virtual std::string_view name() const = 0;  // "udp", "sim", ...
};

}  // namespace fairlead::path
