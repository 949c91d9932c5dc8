#include "base/slow_closer.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "base/lingering_socket_for_tests.hpp"

namespace fairlead::base {
namespace {

// Time limit of the test, not of the closer.
bool wait_until(auto&& is_so) {
  for (int i = 0; i < 10'000 && !is_so(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return is_so();
}

TEST(SlowCloser, WhatLingersHoldsUpNobody) {
  SlowCloser closer;
  LingeringSocket lingering;
  ::alarm(60);  // it would linger for an hour
  closer.close(lingering.take());
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  closer.close(FileDescriptor(pipe[1]));
  ::alarm(0);
  EXPECT_EQ(closer.left(), 2u);
  EXPECT_EQ(SlowCloser::threads(), 1u);
  lingering.abort();
  EXPECT_TRUE(wait_until([&] { return closer.left() == 0; }));
  char byte = 0;
  EXPECT_EQ(::read(pipe[0], &byte, 1), 0) << "the other end was closed";
  ::close(pipe[0]);
  EXPECT_TRUE(wait_until([] { return SlowCloser::threads() == 0; }));
}

TEST(SlowCloser, ItsThreadMayOutliveIt) {
  LingeringSocket lingering;
  {
    SlowCloser closer;
    closer.close(lingering.take());
  }
  lingering.abort();
  EXPECT_TRUE(wait_until([] { return SlowCloser::threads() == 0; }));
}

}  // namespace
}  // namespace fairlead::base
