// Copies between buffers of different segmentation, as in tests/net_copy_conformance_test.cpp, on virtual time: over a
// lossy network, and between processes of one machine.

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <tuple>

#include "net/copy_for_tests.hpp"
#include "sim/net_world.hpp"

namespace fairlead::sim {
namespace {

using namespace std::chrono_literals;

constexpr base::Duration kCopyEndsWithin = 10s;

enum class Between { hosts, processes };

class NetCopyInSimulation : public testing::TestWithParam<std::tuple<net::CopyShape, Between>> {};

TEST_P(NetCopyInSimulation, IsWhole) {
  const auto& [shape, between] = GetParam();
  engine::EngineOptions options;
  ASSERT_TRUE(options.set(engine::Option::shm_ring, 64 << 10) && options.set(engine::Option::shm_shared_max, 8 << 20));
  NetWorld world(1, options, between == Between::processes);
  world.network().set_default_link({.loss = 0.1, .duplication = 0.05, .reordering = 0.1});
  net::Domain near_domain = world.add_host(), far_domain = world.add_host();
  net::TransferMachine near(near_domain), far(far_domain);
  ASSERT_TRUE(near.start_and_wait(NetWorld::address(0, 1)));
  ASSERT_TRUE(far.start_and_wait(NetWorld::address(1, 1)));
  for (const std::size_t scale : {1U, 700U}) {
    for (const auto kind : net::kCopyKinds) {
      SCOPED_TRACE(testing::Message() << "kind " << int(kind) << ", scale " << scale);
      net::Copy copy(shape, scale);
      ASSERT_NO_FATAL_FAILURE(copy.begin(kind, near_domain, near, far_domain, far));
      const base::Instant latest = world.now() + kCopyEndsWithin;
      while (copy.record().entries().size() < net::Copy::kEvents && world.now() < latest) world.step(latest);
      ASSERT_EQ(copy.record().entries().size(), net::Copy::kEvents);
      copy.expect_done();
    }
  }
  EXPECT_EQ(world.through_memory() > 0, between == Between::processes);
}

std::string name_of(const testing::TestParamInfo<NetCopyInSimulation::ParamType>& instance) {
  const auto& [shape, between] = instance.param;
  return std::string(shape.name) + (between == Between::hosts ? "" : "InMemory");
}

INSTANTIATE_TEST_SUITE_P(, NetCopyInSimulation,
                         testing::Combine(testing::ValuesIn(net::kCopyShapes),
                                          testing::Values(Between::hosts, Between::processes)),
                         name_of);

}  // namespace
}  // namespace fairlead::sim
