#pragma once
// The path over UDP sockets (docs/udp-path.md): the kernel cuts and merges trains, and hot peers get connected sockets
// beside the main one.
//
// Ownership of the port. The main socket is bound without SO_REUSEPORT, so the kernel refuses all other sockets. A
// connected socket needs the same port. So SO_REUSEPORT is on at all sockets of the port from just before its bind to
// just after its connect, some 10 us. In that time only a program of the same user that itself asks for SO_REUSEPORT
// could join; our main sockets never ask. (SO_REUSEADDR would let anybody in.) Between bind and connect the new socket
// is open to all peers. A filter of one instruction, attached before the main socket was bound, directs every datagram
// to the main socket. So none ever waits in the wrong queue.
//
// Polling. A run begins with the socket that had something last (the favourite). If it is idle and there are others,
// one epoll_wait() asks all of them at once (106 ns; an idle recv() takes 200), whatever the number of hot peers. In
// the first few microseconds after the favourite had something, only every fourth idle poll asks the others: an answer
// to an answer takes that long, and its receiver should not poll twice. So collect() may return nothing up to three
// times although another socket has something. The descriptor stays readable, so no sleeper misses it.
//
// Watching costs. For a socket in an epoll set the kernel wakes the set for each datagram received, and for each one
// sent that has left. That costs 0.1 us each, and a train has 44. While a thread polls steadily and none sleeps, the
// sockets are out of the set (set_watched). That is done only while polling each socket is cheap: with at most one hot
// peer.

#include <array>
#include <cstddef>
#include <memory>
#include <optional>

#include "path/group_sockets.hpp"
#include "path/path.hpp"
#include "path/route_mtu.hpp"
#include "path/udp_options.hpp"
#include "path/udp_socket.hpp"
#include "path/unreachable_list.hpp"

namespace fairlead::path {

class UdpPath final : public Path {
 public:
  static Result<std::unique_ptr<UdpPath>> open(const UdpOptions& options);
  /// Takes over the socket() of the previous program; datagrams that wait there are not lost.
  static Result<std::unique_ptr<UdpPath>> adopt(base::FileDescriptor socket, const UdpOptions& options);

  base::SocketAddress address() const override { return address_; }
  std::size_t send(std::span<const Train> trains, base::Instant now) override;
  std::size_t collect(std::span<Arrival> out, base::Instant now) override;
  std::size_t unreachable(std::span<Unreachable> out) override;
  std::uint32_t datagram_size_max(const base::SocketAddress& peer) override {
    return route_mtu_.datagram_size_max(peer);
  }
  std::uint32_t train_bytes_max() const override { return 65'507; }  // capacity of one IPv4 datagram
  std::uint32_t train_datagrams_max() const override { return 64; }  // the kernel's own limit
  /// What the kernel granted of the buffer asked for. The kernel charges whole pages against twice this number: 832
  /// bytes for a small datagram, 2.3 KB for one of 1472 bytes.
  std::uint64_t receive_buffer_bytes() const override { return main().facts().receive_buffer_granted; }
  bool is_host_missing(const base::SocketAddress& peer) const override;
  void set_hot(const base::SocketAddress& peer, bool is_hot) override;
  int descriptor() const override { return epoll_.get(); }
  int socket() const override { return main().descriptor(); }
  bool set_watched(bool is_watched) override;
  GroupSockets* groups() override;
  const PathCounters& counters() const override { return counters_; }
  std::string_view name() const override { return "udp"; }

  UdpFacts facts() const;

 private:
  static constexpr std::size_t kHotMax = 16;
  static constexpr std::size_t kSlots = 1 + kHotMax;  // slot 0 is the main socket
  static constexpr std::uint64_t kOfGroups = kSlots;  // data of the multicast entry in the epoll set
  // idle polls of the favourite, except every fourth, before the others are asked; some 4 us
  static constexpr std::size_t kFaithfulLooks = 16;
  static constexpr std::size_t kArrivalsMax = 32;  // buffers, reused from the first one at each collect()

  struct Slot {
    std::optional<UdpSocket> socket;
    bool is_retiring = false;  // no longer hot: closed as soon as it is empty
  };

  UdpPath(UdpSocket main_socket, const base::SocketAddress& address, base::FileDescriptor epoll,
          const UdpOptions& options);

  static Result<std::unique_ptr<UdpPath>> make(UdpSocket socket, const UdpOptions& options);
  const UdpSocket& main() const { return *slots_[0].socket; }
  std::size_t hot_slot(const base::SocketAddress& peer) const;
  std::optional<UdpSocket> connect_beside_main(const base::SocketAddress& peer);
  void close_hot(std::size_t slot);
  bool watch(std::size_t slot);
  std::size_t drain_unwatched(std::span<Arrival> out, std::size_t taken);
  void count_loss(int error);
  std::size_t drain(std::size_t slot, std::span<Arrival> out, std::size_t taken);
  bool looks_elsewhere(std::size_t taken);
  std::size_t drain_others(std::span<Arrival> out, std::size_t taken);
  std::size_t next_favourite() const;
  void read_errors(UdpSocket& socket);

  std::array<Slot, kSlots> slots_;
  std::size_t hot_count_ = 0;
  bool is_watched_ = true;  // either all sockets are in the epoll set, or none
  std::uint64_t gso_refused_by_closed_ = 0;
  std::size_t favourite_ = 0;                // the slot to poll first
  std::size_t idle_looks_ = kFaithfulLooks;  // consecutive idle polls of the favourite
  std::size_t lone_streak_ = 0;              // consecutive runs of one lone arrival
  base::FileDescriptor epoll_;
  base::SocketAddress address_;
  UdpOptions options_;
  RouteMtu route_mtu_;
  UnreachableList unreachable_;
  std::unique_ptr<GroupSockets> groups_;
  PathCounters counters_;
  std::unique_ptr<std::byte[]> buffers_;  // kArrivalsMax buffers of options_.arrival_bytes_max, touched only as needed
};

}  // namespace fairlead::path
