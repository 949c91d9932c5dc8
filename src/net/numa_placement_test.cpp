// Memory of a confined machine's engine and pool comes from the NUMA node of its processors. Here the hosts' nodes are
// made up; node 0 exists everywhere.

#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <fairlead/net.hpp>

#include "base/numa.hpp"
#include "base/page_memory.hpp"

namespace fairlead::net {
namespace {

class NumaPlacement : public ::testing::Test {
 protected:
  NumaPlacement() {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    EXPECT_EQ(::sched_getaffinity(0, sizeof cpus, &cpus), 0);
    while (!CPU_ISSET(first_, &cpus)) ++first_;
    has_others_ = CPU_COUNT(&cpus) > 1;
    char folder[] = "/tmp/fairlead-numa-XXXXXX";
    EXPECT_NE(::mkdtemp(folder), nullptr);
    folder_ = folder;
    write("has_memory", "0-1");
    write("node0/cpulist", std::to_string(first_));
    write("node1/cpulist", std::to_string(first_ + 1) + "-1023");
    base::host_numa() = base::NumaTopology(folder_);
  }
  ~NumaPlacement() override {
    base::host_numa() = before_;
    std::filesystem::remove_all(folder_);
  }
  void SetUp() override {
    const auto memory = base::PageMemory::allocate(4096).value();
    base::place_near(memory.bytes(), 0U);
    if (!base::placed_near(memory.bytes().data())) GTEST_SKIP() << "this kernel lets nobody place memory";
  }
  void write(const std::string& file, const std::string& text) {
    const auto path = std::filesystem::path(folder_) / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << '\n';
  }
  static std::optional<unsigned> node_of(const Buffer& buffer) { return base::placed_near(buffer.segment(0).data()); }

  unsigned first_ = 0;
  bool has_others_ = false;
  std::string folder_;
  const base::NumaTopology before_ = base::host_numa();
};

TEST_F(NumaPlacement, FollowsTheProcessorsOfTheMachine) {
  for (const bool is_confined : {true, false}) {
    if (!is_confined && !has_others_) continue;  // all processors are on node 0
    Domain domain = Domain::open({.engine = {{"path", "shm"}, {"core", "embedded"}}}).value();
    auto pool = BufferPool::create(domain, {.buffer_size = 16'384}).value();
    ASSERT_TRUE(pool.provision(2));
    TransferMachine machine(domain);
    if (is_confined) {
      ASSERT_TRUE(machine.confine({&first_, 1}));
    }
    ASSERT_TRUE(machine.attach(pool, {.on_event = [](const BufferEvent&) {}, .length = 0}));
    ASSERT_TRUE(machine.start_and_wait("127.0.0.1@udp:*:34:*"));
    ASSERT_TRUE(pool.provision(1));  // after the decision
    const std::optional<unsigned> expected = is_confined ? std::optional(0U) : std::nullopt;
    const auto shared = Buffer::allocate(domain, 16'384).value();
    EXPECT_EQ(node_of(*shared), expected) << "memory that peers of this host can access";
    for (int i = 0; i < 3; ++i) {
      Buffer* const pooled = pool.get();
      ASSERT_NE(pooled, nullptr);
      EXPECT_EQ(node_of(*pooled), expected) << "buffer " << i << " of the pool";
      EXPECT_EQ(pool.put(*pooled), Status::ok);
    }
    ASSERT_TRUE(machine.stop_and_wait(StopMode::abort));
  }
}

}  // namespace
}  // namespace fairlead::net
