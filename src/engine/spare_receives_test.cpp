// Which spare is taken, and when a port posts one.

#include "engine/spare_receives.hpp"

#include <array>
#include <string>

#include "engine/message_context_for_tests.hpp"
#include "engine/receives.hpp"

namespace fairlead::engine {
namespace {

TEST(SpareReceives, TheColoursLastOneIsTakenElseTheLeastRecentlyUsedOfAll) {
  SpareReceives spares(8, 2);
  std::array<Spare, 4> all;
  for (Spare& spare : all) spares.put(spare, SpareReceives::kAnyColour);
  for (Spare& spare : all) EXPECT_EQ(spares.take(0), &spare);
  EXPECT_EQ(spares.take(0), nullptr);
  spares.put(all[0], 0);
  spares.put(all[1], 1);
  spares.put(all[2], 0);
  EXPECT_EQ(spares.count(), 3u);
  EXPECT_EQ(spares.take(0), &all[2]);
  EXPECT_EQ(spares.take(1), &all[1]);
  EXPECT_EQ(spares.take(1), &all[0]) << "of the other colour, as there is none";
  EXPECT_EQ(spares.take(0), nullptr);
  EXPECT_EQ(spares.count(), 0u);
}

TEST(SpareReceives, WhoAsksForAnyColourGetsTheLeastRecentlyUsed) {
  SpareReceives spares(8, 2);
  std::array<Spare, 3> all;
  spares.put(all[2], 1);
  spares.put(all[0], 0);
  spares.put(all[1], 0);
  for (const std::size_t next : {2u, 0u, 1u}) EXPECT_EQ(spares.take(SpareReceives::kAnyColour), &all.at(next));
}

class PortSparesTest : public MessageContextTest {
 protected:
  static constexpr std::size_t kSpares = 4;

  PortSparesTest() {
    for (std::size_t i = 0; i < kSpares; ++i) {
      pieces_.at(i) = {texts_.at(i).data(), texts_.at(i).size()};
      all_.at(i).memory = {&pieces_.at(i), 1};
      all_.at(i).cookie = i;
      spares_->put(all_.at(i), SpareReceives::kAnyColour);
    }
  }
  ~PortSparesTest() override {
    while (spares_->take(SpareReceives::kAnyColour) != nullptr) continue;
  }
  void grant(std::uint32_t count) { ports_.find(port_)->spares_granted += count; }
  void plan(std::uint32_t length, std::uint32_t messages_max = 1) {
    receives_.set_spares(port_, {.spares = spares_, .length = length, .messages_max = messages_max});
  }
  bool take(std::string_view text) { return receives_.take(own_, 3, kNumber, bytes(text), now_); }
  std::uint32_t missing() { return receives_.spare_counts(port_).missing; }
  std::uint32_t posted() { return receives_.spare_counts(port_).posted; }
  std::uint64_t dropped() { return ports_.find(port_)->dropped_no_buffer; }

  std::array<std::array<char, 8>, kSpares> texts_{};
  std::array<iovec, kSpares> pieces_{};
  std::array<Spare, kSpares> all_;
  std::shared_ptr<SpareReceives> spares_ = std::make_shared<SpareReceives>(8, 0);
  Receives receives_{context_};
};

TEST_F(PortSparesTest, AMessageWithoutABufferTakesOne) {
  grant(kSpares);
  plan(0);
  for (const char* text : {"one", "two", "three", "four"}) EXPECT_TRUE(take(text)) << text;
  EXPECT_FALSE(take("five"));
  EXPECT_EQ(dropped(), 1u);
  for (std::uint64_t cookie = 0; cookie < kSpares; ++cookie) EXPECT_EQ(event().value().cookie, cookie);
  EXPECT_EQ(texts_[2][0], 't');
  EXPECT_EQ(receives_.spare_counts(port_).unended, 0u);
}

TEST_F(PortSparesTest, OneTakesSeveralMessages) {
  grant(kSpares);
  plan(0, 2);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(take("abc"));
  EXPECT_EQ(spares_->count(), kSpares - 2);
  EXPECT_FALSE(event().value().is_final);
  EXPECT_TRUE(event().value().is_final);
  EXPECT_EQ(event().value().cookie, 1u);
}

TEST_F(PortSparesTest, NoMoreAreTakenThanAreGranted) {
  grant(1);
  plan(3);
  EXPECT_EQ(posted(), 1u);
  EXPECT_TRUE(take("one"));
  EXPECT_FALSE(take("two"));
  grant(1);
  EXPECT_TRUE(take("three"));
}

TEST_F(PortSparesTest, AFullOneIsFollowedByTheNext) {
  grant(kSpares);
  plan(2);
  EXPECT_EQ(posted(), 2u);
  EXPECT_EQ(spares_->count(), 2u);
  EXPECT_TRUE(take("one"));
  EXPECT_EQ(posted(), 2u);
  EXPECT_EQ(spares_->count(), 1u);
  EXPECT_FALSE(spares_->take_wanted());
  for (const char* text : {"two", "three"}) EXPECT_TRUE(take(text)) << text;
  EXPECT_EQ(missing(), 1u);
  EXPECT_TRUE(spares_->take_wanted());
  spares_->put(all_[0], SpareReceives::kAnyColour);
  grant(1);
  plan(2);
  EXPECT_EQ(missing(), 0u);
}

TEST_F(PortSparesTest, AMessageThatIsTooLongTakesNone) {
  grant(kSpares);
  plan(0);
  EXPECT_FALSE(take("123456789"));
  EXPECT_EQ(spares_->count(), kSpares);
}

// The owner of a transfer machine cancels so, as does the machine at a deadline.
TEST_F(PortSparesTest, ACancelledOneThatIsFullCountsOnce) {
  grant(kSpares);
  plan(1);
  const std::uint32_t slot = all_[0].operation.slot;
  const auto match = receives_.match(kNumber, 5, true);
  const std::uint32_t placement = receives_.begin_placement(match.slot, receives_.take_room(match, 5), 5, {own_, 3});
  EXPECT_EQ(posted(), 1u);
  receives_.cancel(slot, now_);
  EXPECT_EQ(posted(), 1u);
  receives_.end_placement(placement, Status::ok, now_);
  EXPECT_EQ(event().value().status, Status::ok);
}

TEST_F(PortSparesTest, OneThatCannotBePostedIsNotLost) {
  EngineOptions few;
  ASSERT_TRUE(few.set("operations_max", "16"));
  MessageContext context(ports_, nullptr, own_, 99, few);
  for (int others = 0; others < 14; ++others) context.operations.make(OperationKind::send, port_, 0);
  Receives receives(context);
  grant(kSpares);
  receives.set_spares(port_, {.spares = spares_, .length = 3});
  EXPECT_EQ(spares_->count(), kSpares - 2);
  EXPECT_EQ(receives.spare_counts(port_).missing, 1u);
}

}  // namespace
}  // namespace fairlead::engine
