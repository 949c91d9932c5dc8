#pragma once
// The multicast groups of an engine, and the queue pairs that are attached to each. Both are limited in number.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <fairlead/error.hpp>
#include <fairlead/verbs/types.hpp>

#include "qp/pair_table.hpp"
#include "qp/shared.hpp"

namespace fairlead::qp {

class GroupTable {
 public:
  static constexpr std::size_t kGroupsMost = 64;
  static constexpr std::size_t kPairsMost = 256;  // for each group

  explicit GroupTable(Shared& shared) : shared_(shared) {}

  /// Attaches a UD queue pair to the group; a second time has no effect. A `lid` other than 0 also names the group;
  /// that of the first queue pair counts. Errors: `invalid` (not UD, or no group's GID), `no_memory` at a limit,
  /// `not_supported` without a path for groups, `not_permitted` if unsealed datagrams are forbidden.
  Result<> attach(const QueuePair& pair, const verbs::Gid& gid, std::uint16_t lid);
  /// Returns `stale` if the queue pair is not attached.
  Status detach(const QueuePair& pair, const verbs::Gid& gid);
  bool is_attached(const QueuePair& pair) const;
  /// Detaches a queue pair that is freed from all groups.
  void forget(const QueuePair& pair);
  bool is_empty() const { return groups_.empty(); }

  /// Returns the indices of the attached queue pairs.
  std::span<const std::uint32_t> pairs_of(const verbs::Gid& canonical) const;
  /// Returns null if no group here has this LID.
  const verbs::Gid* find_lid(std::uint16_t lid) const;
  /// Returns the address that forbids unsealed datagrams: the group's or the engine's own. Returns nothing if both
  /// permit them.
  std::optional<base::SocketAddress> sealed_address(const base::SocketAddress& group) const;
  /// Returns the destination of datagrams to the group.
  base::SocketAddress address_of(const verbs::Gid& canonical) const;

 private:
  struct Group {
    verbs::Gid gid{};
    std::uint16_t lid = 0;
    std::vector<std::uint32_t> pairs;  // indices
  };

  Result<> add(Group group);
  void remove_pair(std::vector<Group>::iterator group, std::uint32_t pair);

  Shared& shared_;
  std::vector<Group> groups_;
};

}  // namespace fairlead::qp
