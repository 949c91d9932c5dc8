#pragma once
// IP multicast groups at one address of this host. Each joined group has a socket bound to the group's address, so that
// no other datagram arrives there; one more socket sends. The kernel copies each datagram to all members on the host,
// also those of the sending host.
//
// Datagrams longer than the interface's MTU leave in fragments. A sender need not be a member.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <sys/uio.h>

#include <fairlead/error.hpp>

#include "base/file_descriptor.hpp"
#include "base/socket_address.hpp"

namespace fairlead::path {

class GroupSockets {
 public:
  static constexpr std::size_t kGroupsMost = 64;
  static constexpr std::size_t kDatagramMost = 4200;  // bytes; a longer one is reported with empty `bytes`

  /// `local`: an address of this host; its port does not matter. If the kernel provides no epoll set, descriptor() is
  /// -1.
  explicit GroupSockets(const base::SocketAddress& local);

  /// Joins a group of our address family, on the port that all its members use. Joins of the same group are counted.
  Result<> join(const base::SocketAddress& group);
  /// Undoes one join(); the last one leaves the group.
  void leave(const base::SocketAddress& group);
  bool is_any_joined() const { return !members_.empty(); }

  /// Sends a datagram. `routers`: the hop limit, where 0 counts as 1; both stay in the local network. Returns 0 or the
  /// kernel's errno.
  int send(const base::SocketAddress& group, std::span<const iovec> pieces, std::uint8_t routers);

  struct Received {
    base::SocketAddress from;
    base::SocketAddress group;         // that it was sent to
    std::span<const std::byte> bytes;  // valid until the next collect()
  };
  /// Returns the datagrams that have arrived, without waiting.
  std::span<const Received> collect();
  /// Readable when collect() has something; -1 if there is none.
  int descriptor() const { return epoll_.get(); }

 private:
  static constexpr std::size_t kInOneLook = 16;

  struct Member {
    base::SocketAddress group;
    base::FileDescriptor socket;
    std::uint32_t users = 0;
  };

  Result<base::FileDescriptor> open_member(const base::SocketAddress& group) const;
  Result<> check_route(const base::SocketAddress& group) const;
  int open_sender();

  base::SocketAddress local_;
  std::uint32_t interface_ = 0;  // IPv6 only: the kernel needs the interface's index
  base::FileDescriptor epoll_, sender_;
  int routers_set_ = -1;  // hop limit set at sender_
  std::vector<Member> members_;
  std::unique_ptr<std::byte[]> buffers_;
  std::array<Received, kInOneLook> received_;
};

}  // namespace fairlead::path
