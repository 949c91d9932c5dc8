#include "base/fifo.hpp"

#include <gtest/gtest.h>

namespace fairlead::base {
namespace {

TEST(Fifo, KeepsItsOrderWhileItGrows) {
  Fifo<int> fifo;
  int in = 0, out = 0;
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 37 + round; ++i) fifo.push(in++);
    for (int i = 0; i < 30; ++i) EXPECT_EQ(fifo.take(), out++);
  }
  while (!fifo.empty()) EXPECT_EQ(fifo.take(), out++);
  EXPECT_EQ(in, out);
  EXPECT_EQ(fifo.take(), std::nullopt);
}

TEST(Fifo, LosesNoneOfTheOthersWithOneInTheMiddle) {
  Fifo<int> fifo;
  for (int i = 0; i < 5; ++i) fifo.push(i);
  fifo.erase(2);
  for (const int left : {0, 1, 3, 4}) EXPECT_EQ(fifo.take(), left);
  EXPECT_TRUE(fifo.empty());
}

TEST(Fifo, FindsByNumberWhatIsInIt) {
  Fifo<int> fifo;
  EXPECT_EQ(fifo.find(0), nullptr);
  EXPECT_EQ(fifo.find(1), nullptr);
  std::size_t gone = 0;
  for (int i = 1; i <= 1000; ++i) {
    fifo.push(i);
    EXPECT_EQ(fifo.last_number(), static_cast<std::size_t>(i));
    if (i % 3 == 0) {
      fifo.pop();
      ++gone;
    }
  }
  for (std::size_t number = 0; number <= 1001; ++number) {
    const int* const found = fifo.find(number);
    ASSERT_EQ(found != nullptr, number > gone && number <= 1000) << number;
    if (found != nullptr) {
      EXPECT_EQ(*found, static_cast<int>(number));
    }
  }
  fifo.clear();
  EXPECT_EQ(fifo.find(1000), nullptr);
  fifo.push(7);
  EXPECT_EQ(fifo.last_number(), 1001U);
}

}  // namespace
}  // namespace fairlead::base
