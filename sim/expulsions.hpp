#pragma once
// Checks that engines expel a liar (sim/liar.hpp): an engine must end the connection when it reads an invalid record,
// and it must read the record in time.

#include <cstdint>
#include <vector>

#include "base/time.hpp"
#include "engine/engine.hpp"
#include "sim/findings.hpp"

namespace fairlead::sim {

class Expulsions {
 public:
  static constexpr base::Duration kWithin = std::chrono::seconds(1);

  /// Awaits that this engine, of host `victim`, expels host `liar` for what it wrote before this line of the ring.
  void await(std::uint32_t victim, engine::Engine& engine, std::uint32_t liar, std::uint64_t line, base::Instant now);
  /// Checks the host, after each of its passes. `engine` is null if it has no process.
  void check(std::uint32_t victim, engine::Engine* engine, Findings& findings);
  /// Checks what is due. Not for a host that has stood still.
  void check_time(std::uint32_t victim, base::Instant now, Findings& findings) const;
  bool is_empty() const { return awaited_.empty(); }
  /// Expulsions that were awaited, and that the engine has counted.
  std::uint64_t count() const { return count_; }

 private:
  struct Awaited {
    std::uint32_t victim = 0, liar = 0;
    std::uint64_t epoch = 0;  // of the victim's engine
    std::uint32_t slot = 0, generation = 0;
    std::uint64_t line = 0;
    std::uint64_t refused = 0;  // counter of the victim before the lie
    base::Instant due{};
  };

  std::vector<Awaited> awaited_;
  std::uint64_t count_ = 0;
};

}  // namespace fairlead::sim
