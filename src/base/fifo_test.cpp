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

}  // namespace
}  // namespace fairlead::base
