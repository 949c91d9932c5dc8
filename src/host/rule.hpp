#pragma once
// Who may attach to the host engine, and with which quota: rules in the order in which the administrator wrote them.
// The first that is of somebody applies to him.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <fairlead/error.hpp>

#include "host/quota.hpp"

namespace fairlead::host {

struct Rule {
  std::optional<std::uint32_t> user{}, group{};  // both have to be right; none: everybody
  Quota quota{};

  /// "user=1000 portals=30-39 ports=4 operations=1000 pairs=64 posts=16M rate=10M": each word at most once, in any
  /// order. Users and groups by number or by name, as this host knows them. The rate is in bytes a second. Queue pairs
  /// are not held to it, so a rule with a rate admits none, unless it says how many.
  static Result<Rule> parse(std::string_view text);

  bool is_of(std::uint32_t user, std::span<const std::uint32_t> groups) const;
};

/// Null if none applies.
const Rule* find_rule(std::span<const Rule> rules, std::uint32_t user, std::span<const std::uint32_t> groups);

}  // namespace fairlead::host
