// The checks of a request for an exposure: key, kind, length, and only once. Direct access: remote_exposures_test.cpp.

#include "engine/exposures.hpp"

#include "engine/message_context_for_tests.hpp"

namespace fairlead::engine {
namespace {

class ExposuresTest : public MessageContextTest {
 protected:
  std::uint64_t expose(bool is_writable) {
    std::uint64_t key = 0;
    EXPECT_EQ(exposures_.add(port_, {.memory = {&piece_, 1}, .length = 64, .is_writable = is_writable, .cookie = 4},
                             operation_, key),
              Status::ok);
    return key;
  }
  Status take(std::uint64_t key, std::uint64_t length, OperationKind kind = OperationKind::expose_writable,
              std::uint32_t port = kNumber) {
    return exposures_.take(key, port, kind, length, slot_);
  }

  std::array<std::byte, 64> memory_{};
  iovec piece_{memory_.data(), memory_.size()};
  OperationHandle operation_;
  std::uint32_t slot_ = Exposures::kNone;
  link::TokenSource secrets_{1, 2};
  Exposures exposures_{context_, secrets_};
};

TEST_F(ExposuresTest, OneIsTakenOnce) {
  const std::uint64_t key = expose(true);
  EXPECT_EQ(take(key, 64), Status::ok);
  EXPECT_EQ(slot_, operation_.slot);
  EXPECT_EQ(take(key, 64), Status::stale);
  exposures_.cancel(slot_, now_);
  EXPECT_FALSE(event()) << "once a transfer has begun its result comes";
  exposures_.complete(slot_, Status::ok, 64, now_);
  EXPECT_EQ(event()->length, 64u);
}

TEST_F(ExposuresTest, WhatIsNotRightIsRefusedAndTheExposureStays) {
  const std::uint64_t key = expose(true);
  EXPECT_EQ(take(key ^ (1ULL << 40), 64), Status::stale);
  EXPECT_EQ(take(0, 64), Status::stale);
  EXPECT_EQ(take(key, 64, OperationKind::expose_writable, kNumber + 1), Status::stale);
  EXPECT_EQ(take(key, 64, OperationKind::expose_readable), Status::not_permitted);
  EXPECT_EQ(take(key, 65), Status::too_big);
  EXPECT_EQ(context_.counters.refused_stale, 3u);
  EXPECT_EQ(context_.counters.refused_not_permitted, 1u);
  EXPECT_EQ(context_.counters.refused_too_big, 1u);
  EXPECT_EQ(take(key, 1), Status::ok);
}

TEST_F(ExposuresTest, AGetHasToHaveRoomForAllOfIt) {
  const std::uint64_t key = expose(false);
  EXPECT_EQ(take(key, 63, OperationKind::expose_readable), Status::too_big);
  EXPECT_EQ(take(key, 64, OperationKind::expose_readable), Status::ok);
}

TEST_F(ExposuresTest, OneThatWasCancelledCannotBeTaken) {
  const std::uint64_t key = expose(true);
  exposures_.cancel(operation_.slot, now_);
  EXPECT_EQ(event()->status, Status::canceled);
  EXPECT_EQ(take(key, 64), Status::stale);
}

// Keys in advance ----------------------------------------------------------------------------------------------------

TEST_F(ExposuresTest, WhoComesBeforeTheExposureIsToComeAgain) {
  std::uint64_t key = 0;
  ASSERT_EQ(exposures_.add_blank(port_, operation_, key), Status::ok);
  EXPECT_TRUE(exposures_.has_blank(port_, operation_));
  for (const OperationKind kind : {OperationKind::expose_readable, OperationKind::expose_writable})
    EXPECT_EQ(take(key, 64, kind), Status::again);
  EXPECT_EQ(take(key ^ (1ULL << 40), 64), Status::stale);
  EXPECT_EQ(take(key, 64, OperationKind::expose_writable, kNumber + 1), Status::stale);
  EXPECT_EQ(context_.counters.asked_early, 2u);
  EXPECT_EQ(context_.counters.refused_stale, 2u);
  const Exposure exposure{.memory = {&piece_, 1}, .length = 64, .is_writable = true, .cookie = 4};
  EXPECT_EQ(exposures_.fill_blank(port_, {operation_.slot, operation_.generation + 1, {}}, exposure), Status::stale);
  ASSERT_EQ(exposures_.fill_blank(port_, operation_, exposure), Status::ok);
  EXPECT_FALSE(exposures_.has_blank(port_, operation_));
  EXPECT_EQ(exposures_.fill_blank(port_, operation_, exposure), Status::stale) << "it is an exposure";
  ASSERT_EQ(take(key, 64), Status::ok);
  exposures_.complete(slot_, Status::ok, 64, now_);
  EXPECT_EQ(event()->cookie, 4u);
}

TEST_F(ExposuresTest, ABlankTakesNoMemoryThatIsTooShort) {
  std::uint64_t key = 0;
  ASSERT_EQ(exposures_.add_blank(port_, operation_, key), Status::ok);
  EXPECT_EQ(exposures_.fill_blank(port_, operation_, {.memory = {&piece_, 1}, .length = 65}), Status::invalid);
  EXPECT_TRUE(exposures_.has_blank(port_, operation_));
}

TEST_F(ExposuresTest, ABlankEndsWithoutAnEvent) {
  std::uint64_t key = 0;
  ASSERT_EQ(exposures_.add_blank(port_, operation_, key), Status::ok);
  exposures_.cancel(operation_.slot, now_);
  EXPECT_FALSE(event());
  EXPECT_EQ(context_.operations.used(), 0u);
  EXPECT_EQ(take(key, 64), Status::stale);
}

}  // namespace
}  // namespace fairlead::engine
