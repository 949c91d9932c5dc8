#include "shm/ring.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <string_view>

#include "shm/memory.hpp"

namespace fairlead::shm {
namespace {

class Ring : public testing::Test {
 protected:
  static constexpr std::size_t kBytes = 4096;
  static constexpr std::uint64_t kSecret = 0x1234'5678'9abc'def0;

  bool write(std::string_view text, std::uint64_t passed = 0) {
    std::byte* body = writer_.reserve(text.size());
    if (body == nullptr) return false;
    std::memcpy(body, text.data(), text.size());
    writer_.publish(text.size(), passed);
    return true;
  }
  std::string read() {
    if (!reader_.has_record()) return "nothing";
    const auto record = reader_.record();
    if (!record) return "refused";
    std::string text(reinterpret_cast<const char*>(record->body.data()), record->body.size());
    reader_.pass(record->body.size());
    return text;
  }

  Memory memory_ = Memory::create({.head_bytes = 4096, .ring_bytes = kBytes, .rings = 1}).value();
  std::atomic<std::uint64_t> passed_{0};
  RingPlace place_{memory_.ring(0), kBytes / kRingLine, kSecret};
  RingWriter writer_{place_, passed_};
  RingReader reader_{place_, passed_};
};

TEST_F(Ring, HandsOverRecordsOfAnyLengthInOrderManyTimesRound) {
  EXPECT_EQ(read(), "nothing");
  for (std::size_t length = 0; length < 3000; length += 7) {
    const std::string text(length, static_cast<char>('a' + length % 26));
    ASSERT_TRUE(write(text));
    ASSERT_TRUE(write("next"));
    ASSERT_EQ(read(), text);
    ASSERT_EQ(read(), "next");
    ASSERT_EQ(read(), "nothing");
    reader_.tell();
    ASSERT_TRUE(writer_.look());
  }
}

// Regression: found by a program that sent two bytes 20,000 times. The last two bytes of a record, with the bytes left
// behind them in the previous round, formed the mark of the next round.
TEST_F(Ring, NoMarkIsMadeOfAnOldOneAndAPayload) {
  constexpr std::uint64_t kLines = kBytes / kRingLine;
  const auto pass_short = [&](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      ASSERT_TRUE(write("x"));
      ASSERT_EQ(read(), "x");
      reader_.tell();
      ASSERT_TRUE(writer_.look());
    }
  };
  for (std::size_t spilled = 1; spilled < sizeof(std::uint64_t); ++spilled) {
    pass_short(kLines);  // leaves a mark in each line
    const std::uint64_t mark = kSecret + writer_.written() + 1 + kLines;
    std::string text(kRingLine - kRingHead + spilled, 'y');
    std::memcpy(text.data() + kRingLine - kRingHead, &mark, spilled);
    ASSERT_TRUE(write(text));
    ASSERT_EQ(read(), text);
    reader_.tell();
    ASSERT_TRUE(writer_.look());
    pass_short(kLines - 1);
    EXPECT_EQ(read(), "nothing") << spilled;
  }
}

TEST_F(Ring, IsFullUntilTheReaderTells) {
  std::size_t written = 0;
  while (write("12345678")) ++written;
  EXPECT_EQ(written, kBytes / kRingLine);
  EXPECT_EQ(writer_.room(), 0u);
  for (std::size_t i = 0; i < written; ++i) EXPECT_EQ(read(), "12345678");
  EXPECT_EQ(read(), "nothing");
  EXPECT_FALSE(write("x"));
  EXPECT_FALSE(writer_.has_news());
  reader_.tell();
  EXPECT_TRUE(writer_.has_news());
  ASSERT_TRUE(writer_.look());
  EXPECT_EQ(writer_.room(), kBytes - kRingHead);
  EXPECT_TRUE(write("x"));
}

TEST_F(Ring, LearnsTheReadersProgressFromRecordsInAnyOrder) {
  ASSERT_TRUE(write("1") && write("2") && write("3"));
  EXPECT_TRUE(writer_.learn(2));
  EXPECT_EQ(writer_.passed(), 2u);
  EXPECT_TRUE(writer_.learn(1));
  EXPECT_TRUE(writer_.look());  // the counter is still 0
  EXPECT_EQ(writer_.passed(), 2u);
}

// Regression: found by a server that answered 128 reads before it looked at further requests. Their `passed` was long
// outdated.
TEST_F(Ring, BearsARecordThatIsRoundsOlderThanTheCounter) {
  for (std::size_t round = 0; round < 5; ++round) {
    while (write("answer")) {
    }
    while (reader_.has_record()) ASSERT_EQ(read(), "answer");
    reader_.tell();
    ASSERT_TRUE(writer_.look());
  }
  const std::uint64_t passed = writer_.passed();
  ASSERT_GT(passed, 4 * place_.lines);
  EXPECT_TRUE(writer_.learn(0));
  EXPECT_EQ(writer_.passed(), passed);
}

TEST_F(Ring, RefusesProgressThatCannotBe) {
  ASSERT_TRUE(write("1"));
  EXPECT_FALSE(writer_.learn(2));
  EXPECT_FALSE(writer_.learn(0x8000'0000));
  passed_ = 2;
  EXPECT_FALSE(writer_.look());
  EXPECT_EQ(writer_.passed(), 0u);
}

TEST_F(Ring, RefusesALengthThatCannotBe) {
  ASSERT_TRUE(write("1"));
  const auto bytes = static_cast<std::uint32_t>(kBytes - kRingHead + 1);
  std::memcpy(memory_.ring(0) + 8, &bytes, sizeof bytes);
  EXPECT_EQ(read(), "refused");
}

TEST_F(Ring, TakesNoPayloadForARecord) {
  // What an earlier record's payload left where the next one will start.
  std::string marks;
  for (std::uint64_t line = 0; line < 8; ++line) {
    for (std::uint64_t i = 0; i < 8; ++i) marks.append(reinterpret_cast<const char*>(&line), sizeof line);
  }
  ASSERT_TRUE(write(marks));
  EXPECT_EQ(read(), marks);
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(read(), "nothing");
    reader_.tell();
    ASSERT_TRUE(writer_.look());
    ASSERT_TRUE(write("x"));
    ASSERT_EQ(read(), "x");
  }
}

}  // namespace
}  // namespace fairlead::shm
