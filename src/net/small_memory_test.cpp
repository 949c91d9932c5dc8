#include "net/small_memory.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <random>
#include <set>
#include <thread>

namespace fairlead::net {
namespace {

/// Counts the chunks in use.
struct ChunkSource {
  std::shared_ptr<int> out = std::make_shared<int>(0);
  int most = 1 << 20;
  std::shared_ptr<std::byte> operator()(std::uint64_t bytes) const {
    if (*out == most) return nullptr;
    ++*out;
    auto* memory = static_cast<std::byte*>(std::aligned_alloc(4096, bytes));
    std::memset(memory, 0, bytes);
    return {memory, [out = out](std::byte* old) {
              --*out;
              std::free(old);
            }};
  }
};

bool is_zero(const std::byte* block, std::size_t size) {
  return std::all_of(block, block + size, [](std::byte byte) { return byte == std::byte{0}; });
}

TEST(SmallMemory, BlocksOfOneSizeShareAChunkAndNotALine) {
  const ChunkSource source;
  SmallMemory memory(source);
  std::vector<std::shared_ptr<std::byte>> blocks;
  std::set<std::uintptr_t> places;
  for (std::size_t i = 0; i < SmallMemory::kChunk / 64; ++i) {
    blocks.push_back(memory.take(8));
    const auto place = reinterpret_cast<std::uintptr_t>(blocks.back().get());
    EXPECT_EQ(place % 64, 0U);
    EXPECT_TRUE(places.insert(place).second);
  }
  EXPECT_EQ(*source.out, 1);
  blocks.push_back(memory.take(64));
  EXPECT_EQ(*source.out, 2);
  blocks.clear();
  EXPECT_EQ(*source.out, 0);
}

TEST(SmallMemory, WhatWasGivenBackIsZeroAgain) {
  SmallMemory memory{ChunkSource()};
  const auto other = memory.take(100);
  auto one = memory.take(100);
  std::memset(one.get(), 0x55, 128);
  one.reset();
  one = memory.take(128);
  EXPECT_TRUE(is_zero(one.get(), 128));
}

TEST(SmallMemory, SaysWhenThereIsNoMore) {
  ChunkSource source;
  source.most = 1;
  SmallMemory memory(source);
  std::vector<std::shared_ptr<std::byte>> blocks(SmallMemory::kChunk / 2048);
  for (auto& block : blocks) block = memory.take(2048);
  EXPECT_EQ(memory.take(2048), nullptr);
  EXPECT_EQ(memory.take(1), nullptr);
  blocks.pop_back();
  EXPECT_NE(memory.take(1025), nullptr);
}

TEST(SmallMemory, RandomSizesInRandomOrderNeverOverlap) {
  const ChunkSource source;
  {
    SmallMemory memory(source);
    std::mt19937 random(1);
    struct Taken {
      std::shared_ptr<std::byte> block;
      std::size_t size;
      std::byte mark;
    };
    std::vector<Taken> all;
    for (int step = 0; step < 20'000; ++step) {
      if (all.size() < 2000 && random() % 5 < 3) {
        const std::size_t size = 1 + random() % SmallMemory::kMost;
        auto block = memory.take(size);
        ASSERT_TRUE(is_zero(block.get(), size));
        const auto mark = static_cast<std::byte>(1 + random() % 255);
        std::memset(block.get(), static_cast<int>(mark), size);
        all.push_back({std::move(block), size, mark});
      } else if (!all.empty()) {
        std::swap(all[random() % all.size()], all.back());
        const Taken& last = all.back();
        ASSERT_TRUE(std::all_of(last.block.get(), last.block.get() + last.size,
                                [&](std::byte byte) { return byte == last.mark; }));
        all.pop_back();
      }
    }
  }
  EXPECT_EQ(*source.out, 0);
}

TEST(SmallMemory, BlocksOutliveItAndMayEndOnAnyThread) {
  std::vector<std::shared_ptr<std::byte>> mine, others;
  {
    SmallMemory memory{ChunkSource()};
    for (int i = 0; i < 500; ++i) (i % 2 == 0 ? mine : others).push_back(memory.take(64));
  }
  std::jthread other([&] { others.clear(); });
  mine.clear();
}

}  // namespace
}  // namespace fairlead::net
