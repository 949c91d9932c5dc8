#include "host/allowance.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "host/shares.hpp"

namespace fairlead::host {
namespace {

using namespace std::chrono_literals;

constexpr base::Instant kStart{};
constexpr std::uint64_t kMi = 1 << 20;

TEST(Allowance, GivesTurnsByBytes) {
  Allowance allowance(0, kStart);
  allowance.begin_turn(kStart, false);
  EXPECT_TRUE(allowance.may_send(kMi)) << "one operation may be longer than a turn";
  allowance.sent(kMi);
  EXPECT_FALSE(allowance.has_turn());
  EXPECT_FALSE(allowance.may_send(1));
  std::uint64_t turns = 0;
  for (; !allowance.has_turn(); ++turns) allowance.begin_turn(kStart, false);
  EXPECT_EQ(turns, kMi / Allowance::kBytesInTurn) << "it owes them";
  allowance.begin_turn(kStart, false);
  allowance.begin_turn(kStart, false);
  allowance.sent(Allowance::kBytesInTurn);
  EXPECT_FALSE(allowance.has_turn()) << "turns that were not used are not saved up";
}

TEST(Allowance, TakesNoTurnsFromNobody) {
  Allowance allowance(0, kStart);
  allowance.begin_turn(kStart, true);
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(allowance.may_send(kMi)) << i;
    allowance.sent(kMi);
  }
  EXPECT_FALSE(allowance.may_send(1)) << "what is outstanding is bounded all the same";
  allowance.ended(kMi);
  EXPECT_TRUE(allowance.may_send(kMi));
  allowance.begin_turn(kStart, false);
  EXPECT_TRUE(allowance.has_turn()) << "what it took while alone is not owed";
}

TEST(Allowance, LetsAnythingGoThatIsAlone) {
  Allowance allowance(0, kStart);
  allowance.begin_turn(kStart, false);
  EXPECT_TRUE(allowance.may_send(~0ULL));
  allowance.sent(~0ULL >> 1);
  allowance.ended(~0ULL >> 1);
  EXPECT_FALSE(allowance.has_turn());
  for (std::int64_t owed = Allowance::kOwedMost; owed > 0; owed -= Allowance::kBytesInTurn)
    allowance.begin_turn(kStart, false);
  EXPECT_TRUE(allowance.has_turn()) << "what it owes is bounded";
}

TEST(Allowance, HoldsARate) {
  Allowance allowance(10 * kMi, kStart);
  std::uint64_t sent = 0;
  base::Instant now = kStart;
  while (now < kStart + 10s) {
    allowance.begin_turn(now, true);
    while (allowance.may_send(kMi / 4)) {
      allowance.sent(kMi / 4);
      allowance.ended(kMi / 4);
      sent += kMi / 4;
    }
    const base::Instant next = allowance.next_send_at();
    ASSERT_GT(next, now);
    ASSERT_LT(next, now + 30ms);
    now = next;
  }
  EXPECT_GE(sent, 100 * kMi);
  EXPECT_LE(sent, 102 * kMi);
  EXPECT_EQ(Allowance(0, kStart).next_send_at(), base::kNever);
}

/// Sends whatever the allowance permits in a period, with a turn each 10 ms. Receives `got` bytes before each.
std::uint64_t sent_in(Allowance& allowance, base::Instant& now, base::Duration period, std::uint64_t got) {
  constexpr std::uint64_t kLength = 1024;
  std::uint64_t sent = 0;
  for (const base::Instant end = now + period; now < end; now += 10ms) {
    allowance.received(got);
    allowance.begin_turn(now, true);
    for (; allowance.may_send(kLength); sent += kLength) {
      allowance.sent(kLength);
      allowance.ended(kLength);
    }
  }
  return sent;
}

TEST(Allowance, CountsWhatItGetsWithinTheRate) {
  Allowance allowance(10 * kMi, kStart);
  base::Instant now = kStart;
  sent_in(allowance, now, 1s, 0);  // what the rate had saved up
  const std::uint64_t sent = sent_in(allowance, now, 10s, 30 * kMi / 1000);
  EXPECT_GE(sent, 69 * kMi);
  EXPECT_LE(sent, 72 * kMi) << "with the 30 MiB that it gets, that is the rate";
}

TEST(Allowance, IsNotMutedByWhoeverSendsToIt) {
  Allowance allowance(kMi, kStart);
  base::Instant now = kStart;
  const std::uint64_t sent = sent_in(allowance, now, 10s, kMi);
  EXPECT_GE(sent, 5 * kMi);
  EXPECT_LE(sent, 5 * kMi + kMi / 2) << "half of the rate, and what was saved up";
  allowance.received(1000 * kMi);
  EXPECT_LT(allowance.next_send_at(), now + 10ms);
  const std::uint64_t afterwards = sent_in(allowance, now, 4s, 0);
  EXPECT_GE(afterwards, 3 * kMi) << "at most one second's worth is owed";
  EXPECT_LE(afterwards, 3 * kMi + kMi / 4);
}

TEST(Shares, LeaveRoomForWhoComesLate) {
  constexpr std::uint64_t kApplications = 16;
  Shares shares(1024, kApplications);
  std::vector<std::uint64_t> had(kApplications);
  for (std::uint64_t& own : had)
    while (own < 2000 && shares.take(own)) ++own;
  std::uint64_t total = 0;
  for (const std::uint64_t own : had) total += own;
  EXPECT_LE(total, 1024u);
  EXPECT_EQ(had[0], 32u + 256u);
  for (const std::uint64_t own : had) EXPECT_GE(own, 32u);
  for (; had[0] > 0; --had[0]) shares.give_back(had[0]);
  EXPECT_TRUE(shares.take(had[15])) << "what the first has given back is common again";
}

}  // namespace
}  // namespace fairlead::host
