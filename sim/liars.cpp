#include "sim/liars.hpp"

#include <algorithm>

#include "sim/addresses.hpp"

namespace fairlead::sim {

void Liars::begin(std::uint32_t number, base::Instant at, base::Instant until, std::uint64_t seed,
                  base::Duration between_most) {
  Random random(seed);
  const std::uint64_t lies = random.next();
  liars_.push_back({number, Liar(lies), random.fork(), at, until, between_most});
}

void Liars::end(std::uint32_t number) {
  std::erase_if(liars_, [&](const Lying& one) { return one.host == number; });
}

base::Instant Liars::next_at() const {
  base::Instant next = expulsions_.is_empty() ? base::kNever : check_at_;
  for (const Lying& one : liars_) next = std::min(next, one.next_at);
  return next;
}

void Liars::turn(std::span<const Process> processes, base::Instant now, Findings& findings,
                 const PairSecrets& secrets) {
  for (Lying& one : liars_) {
    if (one.next_at <= now) lie(one, processes, now, secrets);
  }
  if (now < check_at_ || expulsions_.is_empty()) return;
  check_at_ = now + Expulsions::kWithin;
  for (std::uint32_t number = 0; number < processes.size(); ++number) {
    const Process& process = processes[number];
    expulsions_.check(number, process.engine, findings);
    if (now >= process.awake_from + Expulsions::kWithin) expulsions_.check_time(number, now, findings);
  }
}

void Liars::lie(Lying& one, std::span<const Process> processes, base::Instant now, const PairSecrets& secrets) {
  const auto gap = one.random.mostly_small(1'000, static_cast<std::uint64_t>(one.between_most.count()));
  one.next_at = now + base::Duration(static_cast<std::int64_t>(gap));
  if (one.next_at >= one.until || one.liar.told() >= kLiesMost) one.next_at = base::kNever;
  const Process& liar = processes[one.host];
  if (liar.engine == nullptr || now < liar.awake_from) return;
  const std::uint64_t before = one.liar.told();
  const auto offence = one.liar.lie(*liar.engine->connections(), secrets);
  told_ += one.liar.told() - before;
  if (!offence) return;
  const std::uint32_t number = host_at(offence->victim);
  if (processes[number].engine == nullptr) return;
  expulsions_.await(number, *processes[number].engine, one.host, offence->line_behind, now);
  check_at_ = std::min(check_at_, now + Expulsions::kWithin);
}

}  // namespace fairlead::sim
