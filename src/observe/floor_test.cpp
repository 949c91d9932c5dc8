// The floors measure something and leave nothing behind; their speed is not asserted.

#include "observe/floor.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>

#include <cerrno>

namespace fairlead::observe {
namespace {

using namespace std::chrono_literals;

class Floor : public testing::Test {
 protected:
  Floor() {
    CPU_ZERO(&before_);
    sched_getaffinity(0, sizeof(before_), &before_);
    options_.duration = 30ms;
    options_.cpu_near = options_.cpu_far = sched_getcpu();
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &before_)) options_.cpu_far = cpu;
  }

  ~Floor() override {
    cpu_set_t after;
    CPU_ZERO(&after);
    sched_getaffinity(0, sizeof(after), &after);
    EXPECT_TRUE(CPU_EQUAL(&before_, &after)) << "the caller's affinity was not given back";
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a process was left behind";
    EXPECT_EQ(errno, ECHILD);
  }

  cpu_set_t before_;
  FloorOptions options_;
};

TEST_F(Floor, OfExchangesCountsRoundTrips) {
  for (const std::uint32_t bytes : {8u, 100'000u}) {
    options_.bytes = bytes;
    for (const auto measure : {floor_udp_exchange, floor_tcp_exchange, floor_shm_exchange}) {
      const auto floor = measure(options_);
      ASSERT_TRUE(floor) << floor.error().message;
      EXPECT_GT(floor->one_way.count(), 0u);
    }
  }
}

// Also if the time is over before the second process has run: the floor lasts until it has counted something.
TEST_F(Floor, OfStreamsCountsBytes) {
  for (const base::Duration duration : {base::Duration(30ms), base::Duration(1ns)}) {
    options_.duration = duration;
    for (const std::uint32_t bytes : {8u, 65'536u}) {
      options_.bytes = bytes;
      for (const auto measure : {floor_udp_stream, floor_tcp_stream, floor_shm_stream}) {
        const auto floor = measure(options_);
        ASSERT_TRUE(floor) << floor.error().message;
        EXPECT_GT(floor->bytes, 0u);
        EXPECT_GT(floor->gb_per_s, 0);
        EXPECT_GT(floor->cpu_s_per_gb, 0);
      }
    }
  }
}

TEST_F(Floor, RefusesNonsense) {
  options_.bytes = 0;
  EXPECT_EQ(floor_udp_exchange(options_).error().status, Status::invalid);
  options_.bytes = 8;
  options_.datagram_size = 0;
  EXPECT_EQ(floor_udp_stream(options_).error().status, Status::invalid);
}

}  // namespace
}  // namespace fairlead::observe
