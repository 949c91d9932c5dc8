#pragma once
// Hosts with several NUMA nodes: which memory is near which processors.
//
// The library decides nothing on a host with one node, for threads that may use the processors of several nodes, and
// for threads with a memory policy of their own, as numactl sets it.

#include <sched.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fairlead::base {

/// The nodes that have memory, with their processors.
class NumaTopology {
 public:
  NumaTopology() = default;
  /// Reads a folder with the form of /sys/devices/system/node. What cannot be read counts as absent.
  explicit NumaTopology(const std::string& folder);

  std::size_t node_count() const { return nodes_.size(); }
  /// Returns the node to which all of these processors belong; null if there is none, or only one node in all.
  std::optional<unsigned> node_of(const cpu_set_t& cpus) const;

 private:
  struct Node {
    unsigned number = 0;
    cpu_set_t cpus{};
  };
  std::vector<Node> nodes_;
};

/// Returns the topology of this host, which is read once. Tests put another one in its place.
NumaTopology& host_numa();

/// Returns the node of the processors that the calling thread may use; null if it is undecided (see above).
std::optional<unsigned> near_node();

/// While this exists, pages that the calling thread, or a thread that it starts, is the first to touch come from the
/// node if it has room. Such a thread keeps that policy.
class NearNode {
 public:
  /// Null: changes nothing.
  explicit NearNode(std::optional<unsigned> node) noexcept;
  ~NearNode();
  NearNode(const NearNode&) = delete;
  NearNode& operator=(const NearNode&) = delete;

 private:
  bool is_set_ = false;
};

/// Returns the node that the calling thread prefers, by NearNode or by a policy of the user's; null if there is none,
/// or only one node in all.
std::optional<unsigned> preferred_node();

/// Moves the whole pages of the range to the node, and takes those that nobody has touched yet from there, whoever
/// touches them first. A node without room, or a kernel that forbids it, changes nothing.
void place_near(std::span<const std::byte> range, std::optional<unsigned> node) noexcept;
/// Returns the node of place_near() for this address; null if there is none.
std::optional<unsigned> placed_near(const std::byte* address) noexcept;

}  // namespace fairlead::base
