#pragma once
// Rules that decide who may attach to the host engine, and with which quota, in the administrator's order. The first
// matching rule applies.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <fairlead/error.hpp>

#include "host/quota.hpp"

namespace fairlead::host {

struct Rule {
  std::optional<std::uint32_t> user{}, group{};  // both must match; none: everybody
  Quota quota{};

  /// Parses a rule such as "user=1000 portals=30-39 ports=4 operations=1000 events=4000 pairs=64 posts=16M memory=1G
  /// rate=10M". Each word may occur once, in any order. Users and groups are numbers, or names known on this host. The
  /// rate is in bytes per second. The rate does not limit queue pairs, so a rule with a rate permits none unless it
  /// says how many.
  static Result<Rule> parse(std::string_view text);

  bool is_of(std::uint32_t user, std::span<const std::uint32_t> groups) const;
};

/// Returns null if no rule matches.
const Rule* find_rule(std::span<const Rule> rules, std::uint32_t user, std::span<const std::uint32_t> groups);

}  // namespace fairlead::host
