#include "sim/liars.hpp"

#include <algorithm>

#include "sim/addresses.hpp"

namespace fairlead::sim {

void Liars::begin(std::uint32_t number, base::Instant now, base::Instant until, std::uint64_t seed) {
  Random random(seed);
  const std::uint64_t lies = random.next();
  liars_.push_back({number, Liar(lies), random.fork(), now, until});
}

void Liars::end(std::uint32_t number) {
  std::erase_if(liars_, [&](const Lying& one) { return one.host == number; });
}

base::Instant Liars::next_at() const {
  base::Instant next = expulsions_.is_empty() ? base::kNever : check_at_;
  for (const Lying& one : liars_) next = std::min(next, one.next_at);
  return next;
}

void Liars::turn(std::vector<Host>& hosts, base::Instant now, Findings& findings) {
  for (Lying& one : liars_) {
    if (one.next_at <= now) lie(one, hosts, now);
  }
  if (now < check_at_ || expulsions_.is_empty()) return;
  check_at_ = now + Expulsions::kWithin;
  for (std::uint32_t number = 0; number < hosts.size(); ++number) {
    Host& host = hosts[number];
    expulsions_.check(number, host.engine(), findings);
    if (now >= host.paused_until() + Expulsions::kWithin) expulsions_.check_time(number, now, findings);
  }
}

void Liars::lie(Lying& one, std::vector<Host>& hosts, base::Instant now) {
  const auto gap = one.random.mostly_small(1'000, static_cast<std::uint64_t>(kBetweenLiesMost.count()));
  one.next_at = now + base::Duration(static_cast<std::int64_t>(gap));
  if (one.next_at >= one.until || one.liar.told() >= kLiesMost) one.next_at = base::kNever;
  Host& liar = hosts[one.host];
  if (!liar.is_awake(now)) return;
  const std::uint64_t before = one.liar.told();
  const auto offence = one.liar.lie(*liar.engine()->connections());
  told_ += one.liar.told() - before;
  if (!offence) return;
  const std::uint32_t number = host_at(offence->victim);
  if (!hosts[number].is_up()) return;
  expulsions_.await(number, *hosts[number].engine(), one.host, offence->line_behind, now);
  check_at_ = std::min(check_at_, now + Expulsions::kWithin);
}

}  // namespace fairlead::sim
