#pragma once
// Which queue pairs of an engine are attached to which groups (multicast). Both are bounded.

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
  static constexpr std::size_t kPairsMost = 256;  // of one group

  explicit GroupTable(Shared& shared) : shared_(shared) {}

  /// `lid` names the group, too, if it is not 0; the first one counts. Attached twice is attached once.
  Result<> attach(const QueuePair& pair, const verbs::Gid& gid, std::uint16_t lid);
  /// `stale` if it is not attached.
  Status detach(const QueuePair& pair, const verbs::Gid& gid);
  bool is_attached(const QueuePair& pair) const;
  /// The queue pair goes.
  void forget(const QueuePair& pair);
  bool is_empty() const { return groups_.empty(); }

  /// Indices; none if nobody is attached.
  std::span<const std::uint32_t> pairs_of(const verbs::Gid& canonical) const;
  /// Null if no group here has that LID.
  const verbs::Gid* find_lid(std::uint16_t lid) const;
  /// With which of both nothing unsealed may be exchanged, so that nothing goes to the group: its address, or our own.
  std::optional<base::SocketAddress> sealed_address(const base::SocketAddress& group) const;
  /// Where its datagrams go.
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
