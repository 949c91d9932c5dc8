#pragma once
// The record of all applications' operations and their results: the reference for judging the engines. It knows what no
// single host knows: whether an arriving message was sent, and whether it has arrived before.
//
// A cancelled message may arrive, once and complete. Memory is overwritten as soon as its operation has ended
// (RegionPool), so late reads are detected.

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "engine/completion.hpp"
#include "sim/findings.hpp"
#include "sim/operation.hpp"

namespace fairlead::sim {

class Ledger {
 public:
  // No operation has number 0.
  explicit Ledger(Findings& findings) : findings_(findings) { operations_.emplace_back(); }

  /// Creates a pending operation with a unique number. It never moves.
  Operation& open(OperationKind kind, std::uint32_t host, std::uint32_t life, base::Instant now);
  /// Removes an operation whose submission was refused.
  void take_back(Operation& operation);
  void submitted(const Operation& operation);
  /// Records the end of an operation. A second end is a finding.
  void end(Operation& operation, Status status, base::Instant now);
  /// Records that the process of this life was killed.
  void bury(std::uint32_t host, std::uint32_t life);

  Operation* find(std::uint64_t number);
  /// Records that a message of `bytes` arrived in a receive of `receiver`, from the engine of host `from`.
  void message_arrived(const Operation& receiver, std::uint32_t from, std::uint32_t from_port,
                       std::span<const std::byte> bytes);

  /// Stops judging what this host sends and receives, because it lies: bytes, arrivals and results. Each operation must
  /// still end, once.
  void distrust(std::uint32_t host) { liars_.insert(host); }
  bool is_trusted(std::uint32_t host) const { return !liars_.contains(host); }
  bool has_liars() const { return !liars_.empty(); }

  std::uint64_t pending_of(std::uint32_t host) const { return host < pending_.size() ? pending_[host] : 0; }
  /// Messages to a port of a host that ended after `since` but never arrived.
  struct Missing {
    std::uint64_t surely = 0;   // ended well
    std::uint64_t perhaps = 0;  // ended otherwise
  };
  Missing missing_at(std::uint32_t host, std::uint32_t port, base::Instant since) const;

  const std::deque<Operation>& operations() const { return operations_; }
  std::uint64_t ended() const { return ended_; }

 private:
  struct TinyKind {
    std::uint32_t from = 0, to = 0, port = 0;
    std::uint64_t size = 0;
    auto operator<=>(const TinyKind&) const = default;
  };
  struct TinyCount {
    std::uint64_t sent = 0, received = 0;
  };

  void add_pending(std::uint32_t host, int change);

  Findings& findings_;
  std::deque<Operation> operations_;  // by number
  std::map<TinyKind, TinyCount> tiny_;
  std::vector<std::uint64_t> pending_;  // by host
  std::set<std::uint32_t> liars_;
  std::uint64_t ended_ = 0;
};

}  // namespace fairlead::sim
