#include "host/rule.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace fairlead::host {
namespace {

using testing::HasSubstr;

TEST(Rule, SaysWhoAndWithWhichQuota) {
  const Rule rule =
      Rule::parse(" user=1000  portals=30-39 ports=4 operations=1000 events=4000 pairs=64 posts=1M memory=1G rate=10M ")
          .value();
  EXPECT_EQ(rule.user, 1000u);
  EXPECT_FALSE(rule.group);
  const Quota wanted{.ports = 4,
                     .operations = 1000,
                     .bytes_per_second = 10 << 20,
                     .number_first = 30 << 12,
                     .number_last = (40 << 12) - 1,
                     .pairs = 64,
                     .queue_bytes = 1 << 20,
                     .events = 4000,
                     .registered_bytes = 1 << 30};
  EXPECT_EQ(rule.quota, wanted);
  EXPECT_EQ(Rule::parse("user=root group=root portals=63").value().user, 0u);
  EXPECT_EQ(Rule::parse("group=root").value().group, 0u);
  EXPECT_EQ(Rule::parse("rate=1M").value().quota.pairs, 0u) << "they are not held to it";
  EXPECT_EQ(Rule::parse("pairs=0").value().quota.pairs, 0u);
  EXPECT_EQ(Rule::parse("portals=63").value().quota.number_last, (64u << 12) - 1);
}

TEST(Rule, NamesWhatIsWrongInIt) {
  for (const char* const text : {"",
                                 "  ",
                                 "user",
                                 "user=",
                                 "user=no-such-user",
                                 "user=4294967295",
                                 "user=1000 user=1000",
                                 "portals=0",
                                 "portals=64",
                                 "portals=9-3",
                                 "portals=3-",
                                 "ports=0",
                                 "ports=257",
                                 "operations=65537",
                                 "operations=x",
                                 "rate=0",
                                 "pairs=4097",
                                 "events=0",
                                 "events=16777217",
                                 "posts=257M",
                                 "memory=x",
                                 "memory=0",
                                 "rate=fast",
                                 "speed=3",
                                 "=3"}) {
    const auto rule = Rule::parse(text);
    ASSERT_FALSE(rule.has_value()) << text;
    EXPECT_THAT(rule.error().message, HasSubstr(text));
    EXPECT_THAT(rule.error().message, HasSubstr("portals=FIRST-LAST"));
  }
}

TEST(Rule, AppliesIfItIsTheFirstOfSomebody) {
  const std::array rules{Rule::parse("user=7 ports=1").value(), Rule::parse("group=20 ports=2").value(),
                         Rule::parse("user=8 group=21 ports=3").value()};
  const std::array<std::uint32_t, 2> groups{20, 21};
  const auto ports_of = [&](std::uint32_t user, std::span<const std::uint32_t> in) {
    const Rule* const found = find_rule(rules, user, in);
    return found == nullptr ? 0 : found->quota.ports;
  };
  EXPECT_EQ(ports_of(7, groups), 1u);
  EXPECT_EQ(ports_of(8, groups), 2u);
  EXPECT_EQ(ports_of(8, std::span(groups).last(1)), 3u);
  EXPECT_EQ(ports_of(8, {}), 0u);
  EXPECT_EQ(ports_of(9, std::span(groups).last(1)), 0u);
}

}  // namespace
}  // namespace fairlead::host
