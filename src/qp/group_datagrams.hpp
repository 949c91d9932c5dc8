#pragma once
// UD to groups (multicast): one datagram, and everybody that is attached gets it, in whatever process or host, the
// sender's own queue pairs too. It has no session: nothing is repeated, nothing is sealed, and where it comes from is
// what it says. So it is looked at whole, at once, and nothing is kept of it.

#include <chrono>

#include "path/group_sockets.hpp"
#include "qp/datagrams.hpp"
#include "qp/group_table.hpp"
#include "qp/source_budget.hpp"

namespace fairlead::qp {

class GroupDatagrams {
 public:
  GroupDatagrams(Shared& shared, PairTable& pairs, Datagrams& datagrams, GroupTable& groups)
      : shared_(shared), pairs_(pairs), datagrams_(datagrams), groups_(groups) {}

  /// A request whose own memory is in the list.
  Datagrams::Sent send(const QueuePair& pair, const SendEntry& entry, const GatherList& list);
  /// Takes what has come. True if there was anything.
  bool progress();
  /// One that has come.
  void take(const path::GroupSockets::Received& datagram);

 private:
  static constexpr base::Duration kLookEvery = std::chrono::microseconds(5);  // a look is a system call

  Datagrams::Sent drop(std::uint64_t& counter);

  Shared& shared_;
  PairTable& pairs_;
  Datagrams& datagrams_;
  GroupTable& groups_;
  SourceBudget budget_;
  base::Instant look_at_{};
};

}  // namespace fairlead::qp
