#pragma once
// One non-blocking UDP socket and the cheapest call for each thing done with it. It never fragments, it hears of ICMP
// errors, and an error that an earlier datagram left behind never costs a later one.
//
// Receiving has two modes, because knowing how the kernel merged an arrival takes a control message, and that costs a
// lone datagram 150 ns of some 2,500 (docs/udp-path.md). A socket begins in lone mode: nothing is merged, recv() is
// enough. Several datagrams in one go lead to merging mode; a long row of lone datagrams leads back.

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
  /// An unbound socket of AF_INET or AF_INET6 (which takes IPv4 too if `takes_both`).
  static Result<UdpSocket> make(int family, bool takes_both, const UdpOptions& options);

  /// One that make() made for the program before this one, and that is bound.
  static Result<UdpSocket> adopt(base::FileDescriptor descriptor, const UdpOptions& options);

  /// 0, or the errno of the kernel's refusal.
  int bind_to(const base::SocketAddress& local);
  int connect_to(const base::SocketAddress& peer);
  /// Nothing: the kernel does not say, errno why.
  std::optional<base::SocketAddress> local() const;
  const base::SocketAddress& peer() const { return peer_; }  // of a connected socket

  /// Makes this unbound socket the first of its port: whatever the port's sockets are asked to share goes to it.
  bool lead_port();
  /// Lets further sockets of this user bind the same port, while it is on at all of them.
  bool share_port(bool is_shared);

  enum class Sent { done, later, lost, too_big, failed };
  /// One train; `error` is the kernel's if the outcome is lost, too_big or failed. Later means that the send buffer was
  /// full and the kernel took nothing of it (or, if it takes datagrams singly, only a part, which is then repeated).
  /// Lost: this host dropped it, or some of it, on the way out.
  Sent send(const Train& train, PathCounters& counters, int& error);

  enum class Received { nothing, arrival, truncated };
  Received receive(std::span<std::byte> buffer, Arrival& arrival);
  /// After a run of receive(): how many it gave and whether it ended with nothing. Chooses the mode of the next run.
  void end_run(std::size_t arrivals, bool was_emptied);

  bool is_empty() const;  // of datagrams
  void expect_errors() { has_errors_ = true; }

  struct RemoteError {
    base::SocketAddress to;
    int number = 0;
    std::uint32_t size_hint = 0;  // of EMSGSIZE, by ICMP
  };
  /// One ICMP error about a datagram sent here, if there may be one: without a call as long as no call hinted at it.
  std::optional<RemoteError> next_error();

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
  bool has_errors_ = false;        // a call failed in a way that an entry in the error queue would explain
  std::uint32_t lone_in_row_ = 0;  // arrivals in merging mode since one was merged
  base::SocketAddress peer_;
  UdpFacts facts_;
};

}  // namespace fairlead::path
