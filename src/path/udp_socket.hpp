#pragma once
// One non-blocking UDP socket, with the cheapest call for each operation. It never fragments, and it receives ICMP
// errors. An error left behind by an earlier datagram never costs a later one.
//
// Receiving has two modes. To learn how the kernel merged an arrival takes a control message, which costs a lone
// datagram 150 ns of some 2,500 (docs/udp-path.md). A socket begins in lone mode: nothing is merged, and recv() is
// enough. Several datagrams in one run switch it to merging mode; a long row of lone datagrams switches it back.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/file_descriptor.hpp"
#include "base/socket_address.hpp"
#include "path/path.hpp"
#include "path/udp_options.hpp"

namespace fairlead::path {

class UdpSocket {
 public:
  /// Makes an unbound socket of AF_INET or AF_INET6 (which accepts IPv4 too if `takes_both`).
  static Result<UdpSocket> make(int family, bool takes_both, const UdpOptions& options);

  /// Takes over a bound socket that the previous program made with make().
  static Result<UdpSocket> adopt(base::FileDescriptor descriptor, const UdpOptions& options);

  /// Returns 0, or the kernel's errno.
  int bind_to(const base::SocketAddress& local);
  int connect_to(const base::SocketAddress& peer);
  /// Returns the bound address; nothing if the kernel refuses, with the cause in errno.
  std::optional<base::SocketAddress> local() const;
  const base::SocketAddress& peer() const { return peer_; }  // of a connected socket

  /// Makes this unbound socket the first of its port: it receives whatever arrives for the port's sharing sockets.
  bool lead_port();
  /// Allows other sockets of this user to bind the same port, while it is on at all of them.
  bool share_port(bool is_shared);

  enum class Sent { done, later, lost, too_big, failed };
  /// Sends one train; `error` is set for lost, too_big and failed. Later: the send buffer is full, and the kernel took
  /// nothing. (If datagrams are sent singly it took a part, which will be repeated.) Lost: this host dropped all or
  /// some of it on the way out.
  Sent send(const Train& train, PathCounters& counters, int& error);

  enum class Received { nothing, arrival, truncated };
  Received receive(std::span<std::byte> buffer, Arrival& arrival);
  /// Ends a run of receive() calls, and chooses the mode of the next run. `arrivals`: how many it returned;
  /// `was_emptied`: whether the last call found nothing.
  void end_run(std::size_t arrivals, bool was_emptied);

  bool is_empty() const;  // whether no datagram waits
  void expect_errors() { has_errors_ = true; }

  /// Returns one error about a datagram sent here, mostly by ICMP. It makes no system call unless an earlier call
  /// hinted at an error.
  std::optional<Unreachable> next_error();

  int descriptor() const { return descriptor_.get(); }
  int family() const { return family_; }
  const UdpFacts& facts() const { return facts_; }

 private:
  UdpSocket(base::FileDescriptor descriptor, int family) : descriptor_(std::move(descriptor)), family_(family) {}

  void set_buffers(const UdpOptions& options);
  void probe_offloads(const UdpOptions& options);
  bool merge(bool is_merging);
  int transmit(const Train& train, std::size_t bytes, PathCounters& counters);
  int transmit_single(const Train& train, std::size_t bytes, PathCounters& counters);
  int transmit_merged(const Train& train, PathCounters& counters);
  bool has_room(const Train& train, std::size_t bytes) const;
  int transmit_singly(const Train& train, std::size_t bytes_left, PathCounters& counters);
  template <typename Call>
  int transmit_call(Call call, PathCounters& counters);
  long receive_lone(std::span<std::byte> buffer, Arrival& arrival);
  long receive_merged(std::span<std::byte> buffer, Arrival& arrival);

  base::FileDescriptor descriptor_;
  int family_;
  bool is_connected_ = false;
  bool is_merging_ = false;
  bool has_errors_ = false;        // a call failed, and the error queue may explain why
  std::uint32_t lone_in_row_ = 0;  // lone arrivals in merging mode since the last merged one
  base::SocketAddress peer_;
  UdpFacts facts_;
};

}  // namespace fairlead::path
