#include "base/numa.hpp"

#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <thread>

#include "base/affinity.hpp"
#include "base/page_memory.hpp"

namespace fairlead::base {
namespace {

cpu_set_t cpus(std::initializer_list<unsigned> numbers) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const unsigned number : numbers) CPU_SET(number, &set);
  return set;
}

/// A tree as /sys/devices/system/node.
class NumaTest : public ::testing::Test {
 protected:
  NumaTest() {
    char folder[] = "/tmp/fairlead-numa-XXXXXX";
    EXPECT_NE(::mkdtemp(folder), nullptr);
    folder_ = folder;
  }
  ~NumaTest() override {
    host_numa() = before_;
    std::filesystem::remove_all(folder_);
  }
  void write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories((folder_ / file).parent_path());
    std::ofstream(folder_ / file) << text << '\n';
  }
  NumaTopology read() { return NumaTopology(folder_.string()); }

  std::filesystem::path folder_;
  const NumaTopology before_ = host_numa();
};

TEST_F(NumaTest, TheNodeOfProcessorsIsTheOneThatHasAllOfThem) {
  write("has_memory", "0-1,3");
  write("node0/cpulist", "0-1,8-9");
  write("node1/cpulist", "2-3,10,11");
  write("node2/cpulist", "4-5");  // without memory
  write("node3/cpulist", "");
  const NumaTopology topology = read();
  EXPECT_EQ(topology.node_count(), 3U);
  EXPECT_EQ(topology.node_of(cpus({0})), 0U);
  EXPECT_EQ(topology.node_of(cpus({1, 8, 9})), 0U);
  EXPECT_EQ(topology.node_of(cpus({2, 11})), 1U);
  EXPECT_EQ(topology.node_of(cpus({1, 2})), std::nullopt);
  EXPECT_EQ(topology.node_of(cpus({4})), std::nullopt);
  EXPECT_EQ(topology.node_of(cpus({0, 77})), std::nullopt);
  EXPECT_EQ(topology.node_of(cpus({})), std::nullopt);
}

TEST_F(NumaTest, OneNodeIsNoDecision) {
  write("has_memory", "0");
  write("node0/cpulist", "0-63");
  EXPECT_EQ(read().node_of(cpus({0})), std::nullopt);
}

TEST_F(NumaTest, WhatIsNoListEndsIt) {
  for (const std::string text :
       {"", "x", "-", "0-", "0-x", "4-2", "1,", "1;2", "99999999999999999999", "0-4294967295"}) {
    write("has_memory", "0-1");
    write("node0/cpulist", text);
    write("node1/cpulist", "5");
    const NumaTopology topology = read();
    EXPECT_EQ(topology.node_count(), 2U) << text;
    EXPECT_EQ(topology.node_of(cpus({5})), text == "0-4294967295" ? 0U : 1U) << text;
  }
  write("has_memory", "0-4294967295");
  EXPECT_LE(read().node_count(), 1024U);
  EXPECT_EQ(NumaTopology("/nowhere").node_count(), 0U);
}

/// A made-up host: all processors of this process are on node 0, and another node has none.
class NumaOfThreads : public NumaTest {
 protected:
  NumaOfThreads() {
    write("has_memory", "0-1");
    write("node0/cpulist", "0-1023");
    write("node1/cpulist", "");
    host_numa() = read();
  }
  void SetUp() override {
    int mode = 0;
    const unsigned long first = 1;
    const bool can_set = ::syscall(SYS_set_mempolicy, MPOL_PREFERRED, &first, 64) == 0;
    if (!can_set || ::syscall(SYS_get_mempolicy, &mode, nullptr, 0, nullptr, 0) != 0)
      GTEST_SKIP() << "this kernel lets nobody place memory";
    ::syscall(SYS_set_mempolicy, MPOL_DEFAULT, nullptr, 0);
  }
};

TEST_F(NumaOfThreads, AThreadIsNearTheNodeOfItsProcessors) {
  EXPECT_EQ(near_node(), 0U);
  host_numa() = before_;
  EXPECT_EQ(near_node(), before_.node_count() < 2 ? std::nullopt : before_.node_of(cpus({0})));
}

TEST_F(NumaOfThreads, PolicyOfOnesOwnStays) {
  std::jthread([] {
    const unsigned long first = 1;
    ASSERT_EQ(::syscall(SYS_set_mempolicy, MPOL_BIND, &first, 64), 0);
    EXPECT_EQ(near_node(), std::nullopt);
    {
      const NearNode near(0U);
    }
    int mode = 0;
    ASSERT_EQ(::syscall(SYS_get_mempolicy, &mode, nullptr, 0, nullptr, 0), 0);
    EXPECT_EQ(mode, MPOL_BIND);
  }).join();
}

TEST_F(NumaOfThreads, AThreadThatIsStartedNearANodeStaysThere) {
  const auto mode_here = [] {
    int mode = -1;
    EXPECT_EQ(::syscall(SYS_get_mempolicy, &mode, nullptr, 0, nullptr, 0), 0);
    return mode;
  };
  {
    const NearNode near(near_node());
    EXPECT_EQ(mode_here(), MPOL_PREFERRED);
    EXPECT_EQ(preferred_node(), 0U);
    std::jthread([&] { EXPECT_EQ(mode_here(), MPOL_PREFERRED); }).join();
  }
  EXPECT_EQ(mode_here(), MPOL_DEFAULT);
  EXPECT_EQ(preferred_node(), std::nullopt);
  {
    const NearNode nowhere(std::nullopt);
  }
  EXPECT_EQ(mode_here(), MPOL_DEFAULT);
}

TEST_F(NumaOfThreads, WholePagesArePlaced) {
  const PageMemory memory = PageMemory::allocate(4 * 4096).value();
  EXPECT_EQ(placed_near(memory.bytes().data()), std::nullopt);
  place_near(memory.bytes().subspan(100, 2UL * 4096), std::nullopt);
  EXPECT_EQ(placed_near(&memory.bytes()[4096]), std::nullopt);
  place_near(memory.bytes().subspan(100, 2UL * 4096), 0U);
  EXPECT_EQ(placed_near(&memory.bytes()[0]), std::nullopt);
  EXPECT_EQ(placed_near(&memory.bytes()[4096]), 0U);
  EXPECT_EQ(placed_near(&memory.bytes()[2UL * 4096]), std::nullopt);
  place_near(memory.bytes().first(100), 0U);  // less than a page
  EXPECT_EQ(placed_near(&memory.bytes()[0]), std::nullopt);
}

}  // namespace
}  // namespace fairlead::base
