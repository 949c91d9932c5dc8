// A stranger on the network (stranger.hpp) attacks the bulk transfers of a whole engine with its socket, while an
// honest peer uses the engine. Each attack worked once.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/attacked_pair.hpp"
#include "tests/stranger.hpp"

namespace fairlead::tests {
namespace {

using wire::Operation;

class AttackedEngine : public AttackedPair {
 protected:
  void SetUp() override { ASSERT_TRUE(stranger_.open_session()); }

  Stranger stranger_{victim_.core->address()};
};

// The engine must answer each request, but the stranger acknowledges no answer. Answers to other peers do not wait
// behind those, and at a bound the engine puts the stranger out.
TEST_F(AttackedEngine, AnswersOthersThoughOneAsksForMuchAndTakesNothing) {
  expect_a_transfer_ends_well(true);
  stranger_.acknowledges = false;
  constexpr int kRequests = 190'000;
  int said = 0;
  for (; said < kRequests && !stranger_.is_closed(); ++said) {
    stranger_.say({.operation = Operation::active_request, .source_port = 9, .target_port = 12'345, .cookie = 5});
    if (said % 10'000 == 9'999) {
      stranger_.flush();
      expect_a_transfer_ends_well(said % 20'000 > 10'000);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(said, 60'000) << "it may ask for much";
  EXPECT_FALSE(stranger_.settle()) << "it was put out";
  EXPECT_TRUE(stranger_.is_closed());
  EXPECT_EQ(victim_.counter("engine.expelled.takes_no_answers"), 1u);
  EXPECT_THAT(victim_.core->describe_peer(stranger_.address()), testing::HasSubstr("did not acknowledge the answers"));
  expect_a_transfer_ends_well(true);
  expect_a_transfer_ends_well(false);
}

// Messages carry keys XOR the engine's epoch, so hellos, which anybody can get, must not contain that epoch.
TEST_F(AttackedEngine, TellsNobodyItsEpoch) {
  EXPECT_NE(stranger_.theirs().epoch, victim_.core->epoch());
}

// A stranger guesses tens of thousands of memory keys. No honest peer sends so many wrong keys, so the engine puts the
// stranger out.
TEST_F(AttackedEngine, PutsOutWhoeverGuessesKeys) {
  int said = 0;
  for (; said < 190'000 && !stranger_.is_closed(); ++said) {
    const auto operation = said % 2 == 0 ? Operation::put : Operation::get;
    const auto key = static_cast<std::uint64_t>(said);
    stranger_.say({.operation = operation, .source_port = 9, .target_port = Node::kPort, .key = key, .cookie = 5});
  }
  EXPECT_FALSE(stranger_.settle());
  EXPECT_TRUE(stranger_.is_closed());
  EXPECT_EQ(victim_.counter("engine.expelled.guesses"), 1u);
  EXPECT_GT(victim_.counter("engine.wrong_secrets.exposures"), 65'000u);
  EXPECT_THAT(victim_.core->describe_peer(stranger_.address()), testing::HasSubstr("wrong keys"));
  expect_a_transfer_ends_well(true);
}

}  // namespace
}  // namespace fairlead::tests
