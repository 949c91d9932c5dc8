#pragma once
// The lying processes of a world: when they lie, and whether their peers expel them.

#include <cstdint>
#include <vector>

#include "base/time.hpp"
#include "sim/expulsions.hpp"
#include "sim/host.hpp"
#include "sim/liar.hpp"

namespace fairlead::sim {

class Liars {
 public:
  /// Host `number` lies from now on, until `until` or until it has told enough lies.
  void begin(std::uint32_t number, base::Instant now, base::Instant until, std::uint64_t seed);
  void end(std::uint32_t number);
  base::Instant next_at() const;
  /// Tells the lies that are due, and checks that expulsions come in time.
  void turn(std::vector<Host>& hosts, base::Instant now, Findings& findings);

  /// Checks that this host has expelled whom it should have, after each of its turns.
  void check(std::uint32_t number, Host& host, Findings& findings) {
    expulsions_.check(number, host.engine(), findings);
  }

  std::uint64_t told() const { return told_; }
  std::uint64_t expelled() const { return expulsions_.count(); }

 private:
  static constexpr std::uint64_t kLiesMost = 300;  // of one liar
  static constexpr base::Duration kBetweenLiesMost = std::chrono::milliseconds(20);

  struct Lying {
    std::uint32_t host = 0;
    Liar liar;
    Random random;
    base::Instant next_at{}, until{};
  };
  void lie(Lying& one, std::vector<Host>& hosts, base::Instant now);

  std::vector<Lying> liars_;
  Expulsions expulsions_;
  base::Instant check_at_ = base::kNever;
  std::uint64_t told_ = 0;
};

}  // namespace fairlead::sim
