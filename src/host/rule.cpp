#include "host/rule.hpp"

#include <grp.h>
#include <pwd.h>

#include <algorithm>
#include <array>
#include <ranges>
#include <string>

#include <fmt/format.h>

#include "base/quantity.hpp"

namespace fairlead::host {
namespace {

constexpr std::uint32_t kPortalMost = 63, kPortalShift = 12;
constexpr std::string_view kWords =
    "user=NAME, group=NAME, portals=FIRST-LAST (1 to 63), ports=NUMBER, operations=NUMBER, events=NUMBER (of all its "
    "ports), pairs=NUMBER (queue pairs), posts=BYTES (of what is posted to them), memory=BYTES (of memory regions), "
    "rate=BYTES (a second)";

std::unexpected<Error> bad(std::string_view rule, std::string_view what) {
  return std::unexpected(Error{Status::invalid, 0, fmt::format("rule '{}': {}: want {}", rule, what, kWords)});
}

std::optional<std::uint32_t> number_in(std::string_view text, std::uint64_t least, std::uint64_t most) {
  const auto number = base::parse_quantity(text, "");
  return number && *number >= least && *number <= most ? std::optional(static_cast<std::uint32_t>(*number))
                                                       : std::nullopt;
}

/// Not thread-safe, like getpwnam().
std::optional<std::uint32_t> user_in(std::string_view text) {
  if (const auto number = number_in(text, 0, ~0U - 1)) return number;
  const passwd* const found = ::getpwnam(std::string(text).c_str());
  return found != nullptr ? std::optional(found->pw_uid) : std::nullopt;
}

std::optional<std::uint32_t> group_in(std::string_view text) {
  if (const auto number = number_in(text, 0, ~0U - 1)) return number;
  const group* const found = ::getgrnam(std::string(text).c_str());
  return found != nullptr ? std::optional(found->gr_gid) : std::nullopt;
}

bool read_portals(std::string_view text, Quota& quota) {
  const auto dash = text.find('-');
  const auto first = number_in(text.substr(0, dash), 1, kPortalMost);
  const auto last = dash == std::string_view::npos ? first : number_in(text.substr(dash + 1), 1, kPortalMost);
  if (!first || !last || *first > *last) return false;
  quota.number_first = *first << kPortalShift;
  quota.number_last = ((*last + 1) << kPortalShift) - 1;
  return true;
}

/// Returns false if the word or its value is invalid.
bool read_word(std::string_view name, std::string_view value, Rule& rule) {
  const auto is_taken = [](auto from, auto& to) {
    if (from) to = *from;
    return from.has_value();
  };
  if (name == "user") return (rule.user = user_in(value)).has_value();
  if (name == "group") return (rule.group = group_in(value)).has_value();
  if (name == "portals") return read_portals(value, rule.quota);
  if (name == "ports") return is_taken(number_in(value, 1, kPortsMax), rule.quota.ports);
  if (name == "operations") return is_taken(number_in(value, 1, kOperationsMax), rule.quota.operations);
  if (name == "pairs") return is_taken(number_in(value, 0, kPairsMax), rule.quota.pairs);
  if (name == "events") return is_taken(number_in(value, 1, kEventsOfAllMax), rule.quota.events);
  if (name == "posts") {
    const auto bytes = base::parse_quantity(value, "bytes");
    return bytes && *bytes <= kQueueBytesMax && is_taken(bytes, rule.quota.queue_bytes);
  }
  if (name == "memory")
    return is_taken(base::parse_quantity(value, "bytes"), rule.quota.registered_bytes) &&
           rule.quota.registered_bytes > 0;
  if (name != "rate") return false;
  const auto rate = base::parse_quantity(value, "bytes");
  if (rate) rule.quota.bytes_per_second = *rate;
  return rate.value_or(0) > 0;
}

}  // namespace

Result<Rule> Rule::parse(std::string_view text) {
  Rule rule;
  std::vector<std::string_view> seen;
  for (const auto part : std::views::split(text, ' ')) {
    const std::string_view word(part);
    if (word.empty()) continue;
    const auto equals = word.find('=');
    const std::string_view name = word.substr(0, equals);
    if (std::ranges::find(seen, name) != seen.end()) return bad(text, fmt::format("'{}' occurs twice", name));
    seen.push_back(name);
    if (equals == std::string_view::npos || !read_word(name, word.substr(equals + 1), rule))
      return bad(
          text,
          fmt::format("'{}' is not a valid word, its value is out of range, or this host has no such user or group",
                      word));
  }
  if (seen.empty()) return bad(text, "it is empty");
  if (rule.quota.bytes_per_second > 0 && std::ranges::find(seen, "pairs") == seen.end()) rule.quota.pairs = 0;
  return rule;
}

bool Rule::is_of(std::uint32_t who, std::span<const std::uint32_t> groups) const {
  return (!user || *user == who) && (!group || std::ranges::find(groups, *group) != groups.end());
}

const Rule* find_rule(std::span<const Rule> rules, std::uint32_t user, std::span<const std::uint32_t> groups) {
  const auto found = std::ranges::find_if(rules, [&](const Rule& rule) { return rule.is_of(user, groups); });
  return found != rules.end() ? &*found : nullptr;
}

}  // namespace fairlead::host
