#pragma once
// UD datagrams to groups (multicast). Each attached queue pair gets a copy, in all processes and hosts, including queue
// pairs of the sender's process. There is no session: datagrams are neither retransmitted nor sealed, and their source
// address is not verified. So the engine checks and delivers each datagram as a whole, at once, and stores no part of
// it.

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

  /// Sends a request; `list` has its memory.
  Datagrams::Sent send(const QueuePair& pair, const SendEntry& entry, const GatherList& list);
  /// Takes datagrams that have arrived. Returns true if there were any.
  bool progress();
  /// Takes one datagram.
  void take(const path::GroupSockets::Received& datagram);

 private:
  static constexpr base::Duration kLookEvery = std::chrono::microseconds(5);  // each poll is a system call

  Datagrams::Sent drop(std::uint64_t& counter);

  Shared& shared_;
  PairTable& pairs_;
  Datagrams& datagrams_;
  GroupTable& groups_;
  SourceBudget budget_;
  base::Instant look_at_{};
};

}  // namespace fairlead::qp
