#pragma once
// The lying processes of a world: when they lie, and whether their peers expel them.

#include <cstdint>
#include <span>
#include <vector>

#include "base/time.hpp"
#include "sim/expulsions.hpp"
#include "sim/liar.hpp"

namespace fairlead::sim {

class Liars {
 public:
  /// A process of the world, by its number.
  struct Process {
    engine::Engine* engine = nullptr;  // null if it does not run
    base::Instant awake_from{};        // it stands still before
  };

  /// Host `number` lies from `at` on, until `until` or until it has told enough lies.
  void begin(std::uint32_t number, base::Instant at, base::Instant until, std::uint64_t seed,
             base::Duration between_most = std::chrono::milliseconds(20));
  void end(std::uint32_t number);
  base::Instant next_at() const;
  /// Tells the lies that are due, and checks that expulsions come in time. `secrets`: what the liars know of others.
  void turn(std::span<const Process> processes, base::Instant now, Findings& findings, const PairSecrets& secrets = {});

  /// Checks that this process has expelled whom it should have, after each of its turns.
  void check(std::uint32_t number, engine::Engine* engine, Findings& findings) {
    expulsions_.check(number, engine, findings);
  }

  std::uint64_t told() const { return told_; }
  std::uint64_t expelled() const { return expulsions_.count(); }

 private:
  static constexpr std::uint64_t kLiesMost = 300;  // of one liar

  struct Lying {
    std::uint32_t host = 0;
    Liar liar;
    Random random;
    base::Instant next_at{}, until{};
    base::Duration between_most{};
  };
  void lie(Lying& one, std::span<const Process> processes, base::Instant now, const PairSecrets& secrets);

  std::vector<Lying> liars_;
  Expulsions expulsions_;
  base::Instant check_at_ = base::kNever;
  std::uint64_t told_ = 0;
};

}  // namespace fairlead::sim
