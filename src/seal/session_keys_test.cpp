#include "seal/session_keys.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <random>
#include <vector>

#include "seal/libcrypto.hpp"
#include "seal/random_source.hpp"

namespace fairlead::seal {
namespace {

struct Segment {
  std::array<std::byte, 48> header{};
  SessionKeys::Mark mark;
  std::vector<std::byte> sealed;
};

class SessionKeysTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(load_libcrypto()); }

  std::array<std::unique_ptr<EpochKeys>, 2> new_epoch() {
    NoiseSymmetricState::Split split;
    random_.fill(split.initiator.bytes());
    random_.fill(split.responder.bytes());
    return {std::make_unique<EpochKeys>(split, NoiseRole::initiator, best_aead_maker()),
            std::make_unique<EpochKeys>(split, NoiseRole::responder, best_aead_maker())};
  }

  static Segment seal(SessionKeys& keys, std::uint32_t value) {
    Segment segment;
    segment.header[20] = std::byte{77};
    segment.mark = keys.next_mark();
    const iovec plain{&value, sizeof value};
    segment.sealed.resize(sizeof value + kTagBytes);
    keys.seal(segment.mark, segment.header, {&plain, 1}, segment.sealed.data());
    return segment;
  }

  static Opened open(SessionKeys& keys, const Segment& segment, std::uint32_t* value = nullptr) {
    std::uint32_t plain = 0;
    const Opened opened = keys.open(segment.mark.epoch, static_cast<std::uint32_t>(segment.mark.number), segment.header,
                                    segment.sealed, reinterpret_cast<std::byte*>(&plain));
    if (value != nullptr) *value = plain;
    return opened;
  }

  RandomSource random_ = RandomSource::of_seed(1);
};

TEST_F(SessionKeysTest, OpensOnceWhatWasSealedAndNothingElse) {
  auto [one, two] = new_epoch();
  SessionKeys initiator(std::move(one)), responder(std::move(two));
  Segment segment = seal(initiator, 4711);
  Segment forged = segment;
  forged.header[0] = std::byte{1};
  EXPECT_EQ(open(responder, forged), Opened::bad_tag);
  forged = segment;
  forged.mark.number = 1;
  EXPECT_EQ(open(responder, forged), Opened::bad_tag);
  forged.mark.epoch = 2;
  EXPECT_EQ(open(responder, forged), Opened::unknown_epoch);
  EXPECT_EQ(open(initiator, segment), Opened::bad_tag) << "a segment came back to its sender";
  std::uint32_t value = 0;
  EXPECT_EQ(open(responder, segment, &value), Opened::ok);
  EXPECT_EQ(value, 4711U);
  EXPECT_EQ(open(responder, segment), Opened::replayed);
}

TEST_F(SessionKeysTest, AForgedNumberDoesNotMoveTheWindow) {
  auto [one, two] = new_epoch();
  SessionKeys initiator(std::move(one)), responder(std::move(two));
  const Segment segment = seal(initiator, 1);
  Segment forged = segment;
  forged.mark.number = 0x7000'0000;
  EXPECT_EQ(open(responder, forged), Opened::bad_tag);
  EXPECT_EQ(open(responder, segment), Opened::ok);
}

TEST_F(SessionKeysTest, NothingIsLostWhenTheKeysChange) {
  auto [one, two] = new_epoch();
  SessionKeys initiator(std::move(one)), responder(std::move(two));
  // Both send all the time over a line that delays by up to 60 segments and reorders them; the keys change every 100.
  std::mt19937_64 random(3);
  struct Line {
    std::deque<Segment> segments;
  };
  std::array<Line, 2> lines;  // to the responder, to the initiator
  std::uint32_t opened = 0;
  std::unique_ptr<EpochKeys> answered;
  int answer_comes_in = 0;
  for (std::uint32_t i = 0; i < 4000; ++i) {
    lines[0].segments.push_back(seal(initiator, i));
    lines[1].segments.push_back(seal(responder, i));
    for (std::size_t side = 0; side < 2; ++side) {
      std::deque<Segment>& line = lines[side].segments;
      if (line.size() < 60) continue;
      std::shuffle(line.begin(), line.begin() + 20, random);
      for (int arrived = 0; arrived < 20; ++arrived, ++opened) {
        ASSERT_EQ(open(side == 0 ? responder : initiator, line.front()), Opened::ok) << i;
        line.pop_front();
      }
    }
    if (i % 100 == 0 && initiator.is_settled() && !answered) {
      auto [next_one, next_two] = new_epoch();
      responder.offer(std::move(next_two));
      answered = std::move(next_one);
      answer_comes_in = 30;
    }
    if (answered && --answer_comes_in == 0) initiator.advance(std::move(answered));
  }
  EXPECT_EQ(opened, 2 * (4000U - 40));
  EXPECT_GE(initiator.epoch(), 20U);
  EXPECT_LE(initiator.epoch() - responder.epoch(), 1U);
}

TEST_F(SessionKeysTest, TheKeysBeforeStayAsLongAsThePeerMayUseThem) {
  auto [one, two] = new_epoch();
  SessionKeys initiator(std::move(one)), responder(std::move(two));
  auto [next_one, next_two] = new_epoch();
  responder.offer(std::move(next_two));
  const Segment late = seal(initiator, 1);
  initiator.advance(std::move(next_one));
  EXPECT_FALSE(initiator.is_settled());
  // The responder has not received it yet, and segments sealed with the new keys may be lost.
  initiator.drop_previous();
  EXPECT_EQ(open(initiator, seal(responder, 2)), Opened::ok);
  EXPECT_EQ(open(responder, seal(initiator, 3)), Opened::ok);
  EXPECT_EQ(open(responder, late), Opened::ok);
  EXPECT_EQ(open(initiator, seal(responder, 4)), Opened::ok);
  EXPECT_TRUE(initiator.is_settled());
  initiator.drop_previous();
  responder.drop_previous();
  EXPECT_FALSE(initiator.has_previous() || responder.has_previous());
  EXPECT_EQ(open(responder, late), Opened::unknown_epoch);
}

}  // namespace
}  // namespace fairlead::seal
