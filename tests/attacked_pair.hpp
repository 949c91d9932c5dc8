#pragma once
// Two engines with their sockets on the loopback: a victim, and an honest peer that uses it. What strangers
// (stranger.hpp) do to the victim must not affect the honest peer.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/core.hpp"

namespace fairlead::tests {

/// An engine with a port.
class Node {
 public:
  using Settings = std::vector<std::pair<std::string, std::string>>;

  static constexpr std::uint32_t kPort = 1;
  static constexpr auto kPatience = std::chrono::seconds(30);

  explicit Node(const std::string& ip, const Settings& settings = {});
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node() { core->close_port(port); }

  engine::RemotePort name() const { return {core->address(), kPort}; }
  std::uint64_t counter(const std::string& name) const;
  std::size_t peers() const { return core->facts().peers.size(); }
  /// Waits for the next event.
  std::optional<engine::Completion> next() const;

  std::shared_ptr<engine::Core> core;
  engine::PortHandle port;
};

class AttackedPair : public testing::Test {
 public:
  explicit AttackedPair(const Node::Settings& settings = {})
      : victim_("127.0.0.1", settings), decent_("127.0.0.2", settings) {}

 protected:
  /// A put or a get by the honest peer, which must succeed.
  void expect_a_transfer_ends_well(bool is_put) { expect_a_transfer_ends_well(decent_, is_put); }
  void expect_a_transfer_ends_well(const Node& initiator, bool is_put);

  /// Descriptors of this process, and bytes of its heap (0 if the allocator does not tell).
  struct Held {
    std::size_t descriptors = 0, bytes = 0;
  };
  static Held held();
  /// Checks that this process holds no more than before, apart from `bytes` of heap and the connected sockets of hot
  /// peers.
  static void expect_held(const Held& before, std::size_t bytes);

  Node victim_, decent_;
};

}  // namespace fairlead::tests
