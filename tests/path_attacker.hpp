#pragma once
// An attacker on the path between two engines of the loopback. It has two UDP sockets: each engine takes one of them
// for the other engine. It sees all datagrams and forwards those that the test chooses. It acts only inside calls by
// the test.
//
//   PathAttacker path({one.address(), two.address()});
//   one.send(path.seen_by(0), ...);       `one` takes this address for `two`
//   path.step(forward);                   calls forward(to, bytes) for each datagram

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "base/file_descriptor.hpp"
#include "base/socket_address.hpp"

namespace fairlead::tests {

class PathAttacker {
 public:
  using Bytes = std::vector<std::byte>;

  /// Stands between engines 0 and 1.
  explicit PathAttacker(const std::array<base::SocketAddress, 2>& engines);

  /// The address that engine `which` takes for the other engine.
  const base::SocketAddress& seen_by(std::size_t which) const { return sides_[which].address; }

  /// Sends as if the other engine had sent it.
  void send(std::size_t to, std::span<const std::byte> bytes);

  /// Calls `act(to, bytes)` for each datagram on its way to engine `to`. Returns the number of datagrams.
  template <typename Act>
  std::size_t step(Act&& act) {
    std::size_t count = 0;
    for (std::size_t from = 0; from < 2; ++from) {
      for (std::size_t i = 0; i < kAtATime && take(from); ++i, ++count) act(1 - from, buffer_);
    }
    return count;
  }

 private:
  static constexpr std::size_t kAtATime = 64;

  struct Side {
    base::FileDescriptor socket;
    base::SocketAddress address, engine;
  };

  bool take(std::size_t from);

  std::array<Side, 2> sides_;
  Bytes buffer_;
};

}  // namespace fairlead::tests
