#pragma once
// A process of a machine that lies to its peers: it writes arbitrary bytes into the memory that they share with it, and
// well-formed records with false content. Its engine runs on, so that its peers have conversations with it that were
// honest up to the lie.
//
// It leaves out what its own user's processes can do to each other by design (docs/threat-model.md): it neither writes
// over exposed memory nor clears others' bits in a doorbell. Over peers' tables it writes only words that name no place
// in their memory.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "base/socket_address.hpp"
#include "onesided/shared_tables.hpp"
#include "shm/connections.hpp"
#include "sim/pair_secret.hpp"
#include "sim/random.hpp"

namespace fairlead::sim {

/// An invalid record, for which the victim's engine has to expel the liar.
struct Offence {
  base::SocketAddress victim;
  std::uint64_t line_behind = 0;  // of the ring, behind the record
};

class Liar {
 public:
  explicit Liar(std::uint64_t seed) : random_(seed) {}

  /// Tells one lie to one of the peers. Returns it if the peer's engine has to expel the liar for it. `secrets`: of
  /// queue pairs that the liar is not part of.
  std::optional<Offence> lie(shm::Connections& own, const PairSecrets& secrets);
  std::uint64_t told() const { return told_; }

 private:
  shm::Connection* pick_peer(shm::Connections& own);
  bool offend(shm::Connection& to);
  void forge_record(shm::Connection& to);
  void forge_for_pair(shm::Connection& to, const PairSecret& secret);
  void scribble(std::span<std::byte> memory);
  void scribble_over_tables(onesided::SharedTables& tables, std::uint64_t word_most);
  void claim_use(shm::Connection& to);
  void misreport(shm::Connection& to);
  /// Marks the ring to this peer as damaged: the peer may never reach what follows.
  void damage(const shm::Connection& to) { damaged_.emplace(&to, to.generation); }
  bool is_damaged(const shm::Connection& to) const { return damaged_.contains({&to, to.generation}); }

  Random random_;
  std::uint64_t told_ = 0;
  std::set<std::pair<const shm::Connection*, std::uint32_t>> damaged_;
};

}  // namespace fairlead::sim
