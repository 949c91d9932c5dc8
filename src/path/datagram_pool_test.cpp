#include "path/datagram_pool.hpp"

#include <gtest/gtest.h>

#include <deque>

#include "path/traffic_for_tests.hpp"

namespace fairlead::path {
namespace {

Bytes content(DatagramPool& pool, std::uint32_t name) {
  Bytes bytes;
  for (const iovec& piece : pool.pieces(name)) {
    const auto* first = static_cast<const std::byte*>(piece.iov_base);
    bytes.insert(bytes.end(), first, first + piece.iov_len);
  }
  return bytes;
}

TEST(DatagramPool, KeepsDatagramsOfAnySizeFromTheMiddleOfPieces) {
  DatagramPool pool(64);
  Bytes source = pattern(70'000, 1);
  const std::array<iovec, 4> pieces{
      {{source.data(), 10}, {source.data() + 10, 0}, {source.data() + 10, 4990}, {source.data() + 5000, 65'000}}};
  for (const std::uint32_t size : {0u, 1u, 2047u, 2048u, 2049u, 4096u, 65'536u}) {
    const std::uint32_t name = pool.keep({.port = 7}, pieces, 4464, size);
    ASSERT_NE(name, DatagramPool::kNone);
    EXPECT_EQ(pool.to(name).port, 7);
    EXPECT_EQ(pool.size(name), size);
    EXPECT_EQ(content(pool, name), Bytes(source.begin() + 4464, source.begin() + 4464 + size));
    pool.release(name);
    EXPECT_EQ(pool.blocks_free(), 64u);
  }
}

TEST(DatagramPool, ChangesOneByte) {
  DatagramPool pool(8);
  Bytes source = pattern(5000, 2);
  const iovec piece{source.data(), source.size()};
  const std::uint32_t name = pool.keep({}, {&piece, 1}, 0, 5000);
  for (const std::uint32_t at : {0u, 2047u, 2048u, 4999u}) {
    pool.byte(name, at) ^= std::byte{0x40};
    source[at] ^= std::byte{0x40};
  }
  EXPECT_EQ(content(pool, name), source);
}

TEST(DatagramPool, AFullPoolRefusesAndLosesNothing) {
  DatagramPool pool(10);
  std::deque<std::pair<std::uint32_t, Bytes>> kept;
  std::uint32_t refusals = 0;
  for (std::uint32_t round = 0; round < 1000; ++round) {
    Bytes source = pattern(1 + round * 37 % 9000, round);
    const iovec piece{source.data(), source.size()};
    const auto size = static_cast<std::uint32_t>(source.size());
    if (const std::uint32_t name = pool.keep({}, {&piece, 1}, 0, size); name != DatagramPool::kNone) {
      kept.emplace_back(name, std::move(source));
      continue;
    }
    ++refusals;
    ASSERT_FALSE(kept.empty());
    EXPECT_EQ(content(pool, kept.front().first), kept.front().second);
    pool.release(kept.front().first);
    kept.pop_front();
  }
  EXPECT_GT(refusals, 100u);
  for (const auto& [name, bytes] : kept) {
    EXPECT_EQ(content(pool, name), bytes);
    pool.release(name);
  }
  EXPECT_EQ(pool.blocks_free(), 10u);
}

}  // namespace
}  // namespace fairlead::path
