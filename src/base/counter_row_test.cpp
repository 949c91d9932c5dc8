#include "base/counter_row.hpp"

#include <gtest/gtest.h>

namespace fairlead::base {
namespace {

struct Sample {
  std::uint64_t sent = 0, received = 0;
  std::array<std::uint64_t, 2> refused{};
};
using Row = CounterRow<Sample>;

constexpr Row kSent{"sent", &Sample::sent, "messages that were sent"};
constexpr Row kReceived{"received", &Sample::received, "messages that came"};

static_assert(are_complete(std::array{kSent, kReceived}, 2));

TEST(CounterRow, AMemberWithoutARowIsNoticed) {
  constexpr bool kOneShort = are_complete(std::array{kSent}, 2);
  constexpr bool kArrayForgotten = are_complete(std::array{kSent, kReceived});
  EXPECT_FALSE(kOneShort);
  EXPECT_FALSE(kArrayForgotten);
}

TEST(CounterRow, AMemberOrANameThatComesTwiceIsNoticed) {
  constexpr bool kMemberTwice = are_complete(std::array{kSent, Row{"again", &Sample::sent, "the same"}}, 2);
  constexpr bool kNameTwice = are_complete(std::array{kSent, Row{"sent", &Sample::received, "another"}}, 2);
  EXPECT_FALSE(kMemberTwice);
  EXPECT_FALSE(kNameTwice);
}

TEST(CounterRow, ARowWithoutASentenceIsNoticed) {
  constexpr bool kSilent = are_complete(std::array{kSent, Row{"received", &Sample::received, ""}}, 2);
  EXPECT_FALSE(kSilent);
}

}  // namespace
}  // namespace fairlead::base
