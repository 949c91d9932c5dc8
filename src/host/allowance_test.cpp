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
  allowance.received(100 * kMi);
  EXPECT_GT(allowance.next_send_at(), now + 9s) << "what it gets counts, too";
  EXPECT_EQ(Allowance(0, kStart).next_send_at(), base::kNever);
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
