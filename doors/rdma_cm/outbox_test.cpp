#include "doors/rdma_cm/outbox.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace fairlead::rdma_cm {
namespace {

constexpr Instant kNow{std::chrono::seconds(1000)};

Ip host(std::uint8_t number) {
  Ip ip{};
  ip[15] = number;
  return ip;
}

Sent message_of(Kind kind, std::uint64_t name, std::uint8_t from_host = 1) {
  Sent sent;
  sent.name = name;
  sent.host = host(from_host);
  sent.to = "manager of host " + std::to_string(from_host);
  sent.message.kind = kind;
  return sent;
}

TEST(Places, OfOneHostAreHalfOfAllAndAllAreBounded) {
  Places places(4);
  EXPECT_TRUE(places.take(host(1)) && places.take(host(1)));
  EXPECT_FALSE(places.take(host(1)));
  EXPECT_TRUE(places.take(host(2)) && places.take(host(3)));
  EXPECT_FALSE(places.take(host(4)));
  places.release(host(1));
  EXPECT_TRUE(places.take(host(4)));
  places.release(host(9));  // it has no place
  EXPECT_FALSE(places.take(host(5)));
  EXPECT_TRUE(Places(1).take(host(1)));
}

// Strangers cause them, and may delay their acknowledgement.
TEST(Outbox, DropsAndCountsAnswersBeyondItsBound) {
  Outbox outbox;
  std::optional<std::uint64_t> first;
  for (std::uint32_t i = 0; i < 10 * Outbox::kAnswersMax; ++i) {
    const auto tag = outbox.add(message_of(Kind::rej, 0, static_cast<std::uint8_t>(i % 10)));
    if (tag != 0 && first) outbox.refuse(tag, Status::again, kNow);
    if (!first) first = tag;
  }
  EXPECT_EQ(outbox.answers_dropped(), 9 * Outbox::kAnswersMax);
  EXPECT_EQ(outbox.add(message_of(Kind::busy, 0)), 0U);
  EXPECT_NE(outbox.add(message_of(Kind::rep, 5)), 0U);  // belongs to an id, which has a limit of its own
  EXPECT_FALSE(outbox.finish(*first, Status::ok, kNow));
  EXPECT_NE(outbox.add(message_of(Kind::busy, 0)), 0U);
}

TEST(Outbox, TriesAgainSoOftenWhoeverHasNoRoom) {
  for (const Status why : {Status::again, Status::no_memory, Status::no_buffer}) {
    Outbox outbox;
    const std::uint64_t tag = outbox.add(message_of(Kind::req, 5));
    Instant now = kNow;
    for (unsigned i = 1; i <= Outbox::kTriesMax; ++i) {
      if (i % 2 == 0) {
        EXPECT_FALSE(outbox.finish(tag, why, now));
      } else {
        outbox.refuse(tag, why, now);
      }
      if (i == Outbox::kTriesMax) break;
      EXPECT_FALSE(outbox.take_due(now));
      now += Outbox::kAgainAfter;
      EXPECT_EQ(outbox.next_due(), now);
      ASSERT_EQ(outbox.take_due(now), tag);
      ASSERT_FALSE(outbox.give_up(tag));
    }
    EXPECT_EQ(outbox.sent_again(), Outbox::kTriesMax / 2);
    ASSERT_EQ(outbox.take_due(now), tag);
    const auto failed = outbox.give_up(tag);
    ASSERT_TRUE(failed);
    EXPECT_EQ(failed->why, why);
    EXPECT_TRUE(outbox.is_empty());
  }
}

TEST(Outbox, TellsWhatHasFailedForGood) {
  Outbox outbox;
  const auto failed = outbox.finish(outbox.add(message_of(Kind::req, 5)), Status::refused, kNow);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->why, Status::refused);
  EXPECT_EQ(failed->sent.name, 5U);
  const std::uint64_t refused = outbox.add(message_of(Kind::req, 6));
  outbox.refuse(refused, Status::unreachable, kNow);
  EXPECT_EQ(outbox.take_due(kNow), refused);  // by the thread, not by the step that sends
  EXPECT_EQ(outbox.give_up(refused)->why, Status::unreachable);
  EXPECT_FALSE(outbox.finish(refused, Status::ok, kNow));
  EXPECT_TRUE(outbox.is_empty());
}

TEST(Outbox, KnowsARejectionUntilItHasArrived) {
  Outbox outbox;
  outbox.add(message_of(Kind::rep, 5));
  EXPECT_FALSE(outbox.is_rejecting(5));
  const std::uint64_t rejection = outbox.add(message_of(Kind::rej, 6));
  EXPECT_TRUE(outbox.is_rejecting(6));
  EXPECT_FALSE(outbox.is_rejecting(5));
  outbox.refuse(rejection, Status::again, kNow);
  EXPECT_TRUE(outbox.is_rejecting(6));
  EXPECT_FALSE(outbox.finish(rejection, Status::ok, kNow));
  EXPECT_FALSE(outbox.is_rejecting(6));
}

TEST(Outbox, AsksAPeerOnceAtATimeWhetherItLives) {
  Outbox outbox;
  const std::uint64_t question = outbox.add(message_of(Kind::alive, 0));
  EXPECT_NE(question, 0U);
  EXPECT_FALSE(outbox.finish(outbox.add(message_of(Kind::rtu, 5)), Status::ok, kNow));  // does not answer the question
  EXPECT_EQ(outbox.add(message_of(Kind::alive, 0)), 0U);
  EXPECT_NE(outbox.add(message_of(Kind::alive, 0, 2)), 0U);
  EXPECT_FALSE(outbox.finish(question, Status::no_buffer, kNow));  // it is alive
  const std::uint64_t next = outbox.add(message_of(Kind::alive, 0));
  ASSERT_NE(next, 0U);
  outbox.refuse(next, Status::again, kNow);
  EXPECT_FALSE(outbox.take_due(kNow + std::chrono::hours(1)));
  EXPECT_TRUE(outbox.finish(outbox.add(message_of(Kind::alive, 0)), Status::silent, kNow));
}

}  // namespace
}  // namespace fairlead::rdma_cm
