#include "qp/outstanding.hpp"

#include "qp/parts_for_tests.hpp"

namespace fairlead::qp {
namespace {

using std::chrono::milliseconds;
using verbs::Cause;
using verbs::SendOpcode;
using verbs::WcStatus;

class OutstandingRequests : public testing::Test {
 protected:
  PartsForTests parts_;
  QueuePair& pair_ = *parts_.pair;
  Outstanding& outstanding_ = parts_.outstanding;
};

TEST_F(OutstandingRequests, AreCompletedInOrderAndAReadWaitsForItsData) {
  const RequestNumber read = parts_.send(SendOpcode::read), last = parts_.send();
  outstanding_.take_answer(pair_, last, {});
  EXPECT_TRUE(parts_.completions().empty()) << "the read is not done";
  const std::array<std::byte, 8> data{std::byte{9}};
  outstanding_.place_result(pair_, read, 0, data);
  outstanding_.finish_result(pair_, read);
  outstanding_.take_answer(pair_, read, {});
  const auto all = parts_.completions();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].opcode, verbs::WcOpcode::read);
  EXPECT_EQ(all[1].wr_id, last.value);
  EXPECT_EQ(parts_.memory[0], std::byte{9});
}

TEST_F(OutstandingRequests, WaitForAReceiveAsOftenAsTheyMay) {
  const RequestNumber number = parts_.send();
  outstanding_.take_answer(pair_, number, {.verdict = Verdict::rnr, .rnr_code = 1});
  EXPECT_EQ(pair_.sends.next(), number) << "it is sent again ...";
  EXPECT_TRUE(pair_.patience.is_paused);
  EXPECT_EQ(pair_.patience.resume_at, parts_.shared.now + std::chrono::microseconds(10)) << "... after a pause";
  pair_.sends.sent_message(pair_.sends[number]);
  outstanding_.take_answer(pair_, number, {.verdict = Verdict::rnr, .rnr_code = 1});
  const auto all = parts_.completions();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].status, WcStatus::rnr_retry_exc_err);
  EXPECT_EQ(pair_.state(), verbs::QpState::err);
}

TEST_F(OutstandingRequests, ThatAreRefusedFailAndWhatIsBehindThemIsFlushed) {
  const RequestNumber good = parts_.send(), bad = parts_.send();
  parts_.send();
  outstanding_.take_answer(pair_, bad, {.verdict = Verdict::access, .cause = Cause::key_unknown});
  const auto all = parts_.completions();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].wr_id, good.value);
  EXPECT_EQ(all[0].status, WcStatus::success) << "a refusal acknowledges what was before it";
  EXPECT_EQ(all[1].status, WcStatus::rem_access_err);
  EXPECT_EQ(all[1].vendor_err, std::to_underlying(Cause::key_unknown));
  EXPECT_EQ(all[2].status, WcStatus::wr_flush_err);
}

TEST_F(OutstandingRequests, OfAPeerThatIsLostFailWhenATimerWouldHaveGivenUp) {
  parts_.send();
  pair_.await(parts_.shared.now);
  outstanding_.lose(pair_, Status::restarted);
  EXPECT_TRUE(parts_.completions().empty());
  EXPECT_EQ(pair_.due(), parts_.shared.now + 2 * pair_.answer_patience());
  outstanding_.end_lost(pair_);
  EXPECT_EQ(parts_.completions().at(0).vendor_err, std::to_underlying(Cause::peer_restarted));
}

}  // namespace
}  // namespace fairlead::qp
