#pragma once
// Groups of hosts (IP multicast), at one address of this host: a socket for each group that was joined, bound to the
// group's own address, so that nothing else comes in there; and one to send from. All engines of a host that have
// joined a group get each of its datagrams, those of this host too: the kernel makes the copies.
//
// Datagrams longer than the interface's MTU leave in fragments. A sender needs not have joined.

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
  static constexpr std::size_t kDatagramMost = 4200;  // bytes; a longer one is handed up empty

  /// `local`: an address of this host; its port does not matter. Without a descriptor if the kernel gives none.
  explicit GroupSockets(const base::SocketAddress& local);

  /// In our family, with the port that all its members have. What was joined before counts again.
  Result<> join(const base::SocketAddress& group);
  /// As often as it was joined.
  void leave(const base::SocketAddress& group);
  bool is_any_joined() const { return !members_.empty(); }

  /// Across at most so many routers and one more; 0, or the kernel's errno.
  int send(const base::SocketAddress& group, std::span<const iovec> pieces, std::uint8_t routers);

  struct Received {
    base::SocketAddress from;
    base::SocketAddress group;         // to which it was sent
    std::span<const std::byte> bytes;  // until the next collect()
  };
  /// What has come, without waiting.
  std::span<const Received> collect();
  /// Readable when collect() would find something; -1 if there is none.
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
  std::uint32_t interface_ = 0;  // IPv6: the kernel wants its index
  base::FileDescriptor epoll_, sender_;
  int routers_set_ = -1;  // at sender_
  std::vector<Member> members_;
  std::unique_ptr<std::byte[]> buffers_;
  std::array<Received, kInOneLook> received_;
};

}  // namespace fairlead::path
