#pragma once
// Somebody on the path between two engines of the loopback, who takes each for the other: two UDP sockets, one at which
// the first engine finds the second, one at which the second finds the first. It sees every datagram, and sends on what
// it likes. It acts only while the test calls it.
//
//   PathAttacker path({one.address(), two.address()});
//   one.send(path.seen_by(0), ...);       `one` believes that `two` is there
//   path.step(forward);                   for each datagram that came; forward(attacker, to, bytes)

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

  /// Between engines 0 and 1.
  explicit PathAttacker(const std::array<base::SocketAddress, 2>& engines);

  /// Where engine `which` finds the other one.
  const base::SocketAddress& seen_by(std::size_t which) const { return sides_[which].address; }

  /// As if the other engine had sent it.
  void send(std::size_t to, std::span<const std::byte> bytes);

  /// Calls `act(to, bytes)` for each datagram that has come on its way to engine `to`: how many.
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
