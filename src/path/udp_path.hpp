#pragma once
// The path over UDP sockets (docs/udp-path.md): trains cut and merged by the kernel, and connected sockets for hot
// peers beside the main one.
//
// Ownership of the port. The main socket is bound without any permission to share, so the kernel refuses everybody
// else, always. A connected socket needs the same port: SO_REUSEPORT is on at all of them from just before its bind to
// just after its connect, some 10 us, and off at all other times. In that time only a program of the same user that
// asks for SO_REUSEPORT itself could join; our own main sockets never ask. (SO_REUSEADDR would let anybody in.)
// Between bind and connect, the new socket is still open to all peers; a filter of one instruction at the main socket,
// installed before it was bound, sends everything to that one, so no datagram ever waits in a foreign queue.
//
// Looking. A run starts with the socket that gave something last (the favourite). If that one is idle and there are
// others, one epoll_wait() asks all of them at once (106 ns; an idle recv() takes 200), whatever the number of hot
// peers. In the first few microseconds after the favourite gave something, only every fourth idle look asks the others:
// so long the answer to an answer takes, and who waits for it should not look at two places. Then collect() may answer
// nothing up to three times although another socket has something; the descriptor stays readable, so no sleeper misses
// it.
//
// Being watched costs. A socket in an epoll set makes the kernel wake the set for each datagram that comes, and for
// each one sent that has left (0.1 us each, and a train is 44 of them). So while somebody polls steadily and nobody
// sleeps, the sockets are out of the set (set_watched), as long as one look at each is cheap: beside one hot peer at
// most.

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
  /// With the socket() of the program before this one; what has come there is not lost.
  static Result<std::unique_ptr<UdpPath>> adopt(base::FileDescriptor socket, const UdpOptions& options);

  base::SocketAddress address() const override { return address_; }
  std::size_t send(std::span<const Train> trains, base::Instant now) override;
  std::size_t collect(std::span<Arrival> out, base::Instant now) override;
  std::size_t unreachable(std::span<Unreachable> out) override;
  std::uint32_t datagram_size_max(const base::SocketAddress& peer) override {
    return route_mtu_.datagram_size_max(peer);
  }
  std::uint32_t train_bytes_max() const override { return 65'507; }  // what one IPv4 datagram can carry
  std::uint32_t train_datagrams_max() const override { return 64; }  // the kernel's own limit
  /// What was asked for, as far as granted. The kernel charges whole pages: 832 bytes for a small datagram, 2.3 KB for
  /// one of 1472, against twice this number.
  std::uint64_t receive_buffer_bytes() const override { return main().facts().receive_buffer_granted; }
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
  static constexpr std::uint64_t kOfGroups = kSlots;  // in the epoll set
  static constexpr std::size_t kFaithfulLooks = 16;   // idle looks at the favourite, but for every fourth: some 4 us
  static constexpr std::size_t kArrivalsMax = 32;     // buffers, reused from the first at each collect()

  struct Slot {
    std::optional<UdpSocket> socket;
    bool is_retiring = false;  // no longer hot: closed as soon as it is found empty
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
  bool is_watched_ = true;  // all sockets are in the epoll set, or none
  std::uint64_t gso_refused_by_closed_ = 0;
  std::size_t favourite_ = 0;                // the slot to look at first
  std::size_t idle_looks_ = kFaithfulLooks;  // in a row, at the favourite
  std::size_t lone_streak_ = 0;              // runs of one arrival since somebody was found idle
  base::FileDescriptor epoll_;
  base::SocketAddress address_;
  UdpOptions options_;
  RouteMtu route_mtu_;
  UnreachableList unreachable_;
  std::unique_ptr<GroupSockets> groups_;
  PathCounters counters_;
  std::unique_ptr<std::byte[]> buffers_;  // kArrivalsMax times options_.arrival_bytes_max, touched as needed
};

}  // namespace fairlead::path
