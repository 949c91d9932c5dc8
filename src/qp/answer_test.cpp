#include "qp/answer.hpp"

#include <gtest/gtest.h>

namespace fairlead::qp {
namespace {

TEST(Answer, ComesBackAsItWas) {
  for (std::uint8_t verdict = 0; verdict <= std::to_underlying(wire::kVerdictLast); ++verdict) {
    const Answer answer{.verdict = static_cast<Verdict>(verdict),
                        .cause = verbs::Cause::misaligned,
                        .carries_result = verdict == 0,
                        .value = 77,
                        .rnr_code = 31};
    const wire::Envelope envelope = encode(answer, {9}, {.source = 5, .target = 6});
    EXPECT_EQ(wire::decode_request_key(envelope.key).sequence, wire::RequestSequence{9});
    EXPECT_EQ(envelope.source_port, 5u);
    EXPECT_EQ(envelope.target_port, 6u);
    const auto found = decode_answer(envelope);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->verdict, answer.verdict);
    EXPECT_EQ(found->cause, answer.cause);
    EXPECT_EQ(found->carries_result, answer.carries_result);
    EXPECT_EQ(found->value, 77u);
    EXPECT_EQ(found->rnr_code, 31);
  }
}

TEST(Answer, AVerdictThatIsNoneIsNoAnswer) {
  wire::Envelope envelope = encode({}, {9}, {});
  envelope.status = std::to_underlying(wire::kVerdictLast) + 1;
  EXPECT_FALSE(decode_answer(envelope));
  envelope.status = std::to_underlying(Verdict::rnr);
  envelope.flags = wire::kCarriesResult;
  EXPECT_FALSE(decode_answer(envelope)->carries_result) << "a refusal carries nothing";
}

}  // namespace
}  // namespace fairlead::qp
