#include "base/scatter.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

namespace fairlead::base {
namespace {

// Memory cut into pieces of the given sizes, all of it inside one array so that its contents can be compared.
class Pieces {
 public:
  explicit Pieces(const std::vector<std::size_t>& sizes)
      : bytes_(std::accumulate(sizes.begin(), sizes.end(), std::size_t{0})) {
    std::size_t offset = 0;
    for (const std::size_t size : sizes) {
      list_.push_back({bytes_.data() + offset, size});
      offset += size;
    }
  }
  std::span<const iovec> list() const { return list_; }
  std::vector<std::byte>& bytes() { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
  std::vector<iovec> list_;
};

TEST(Scatter, APartIsThePiecesInIt) {
  Pieces all({3, 0, 5, 4});
  std::iota(reinterpret_cast<std::uint8_t*>(all.bytes().data()),
            reinterpret_cast<std::uint8_t*>(all.bytes().data()) + 12, std::uint8_t{0});
  std::array<iovec, 4> out;
  for (std::uint64_t offset = 0; offset <= 12; ++offset) {
    for (std::uint64_t length = 0; length <= 12 - offset; ++length) {
      std::uint64_t at = offset;
      for (const iovec& piece : scatter_part(all.list(), offset, length, out)) {
        EXPECT_EQ(piece.iov_base, all.bytes().data() + at);
        at += piece.iov_len;
      }
      EXPECT_EQ(at, offset + length);
    }
  }
}

TEST(Scatter, SizeSumsAndSaturates) {
  EXPECT_EQ(scatter_size({}), 0u);
  const std::array<iovec, 2> two{{{nullptr, 3}, {nullptr, 4}}};
  EXPECT_EQ(scatter_size(two), 7u);
  const std::array<iovec, 2> huge{{{nullptr, SIZE_MAX}, {nullptr, 4}}};
  EXPECT_EQ(scatter_size(huge), UINT64_MAX);
}

TEST(Scatter, WritesAcrossPiecesIncludingEmptyOnes) {
  Pieces to({2, 0, 3, 1});
  const std::array<std::byte, 4> from{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  scatter_write(to.list(), 1, from);
  const std::vector<std::byte> want{std::byte{0}, std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}, std::byte{0}};
  EXPECT_EQ(to.bytes(), want);
  scatter_write(to.list(), 6, {});
}

TEST(Scatter, CopiesBetweenAnyTwoSegmentations) {
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    std::vector<std::size_t> from_sizes(1 + random() % 6), to_sizes(1 + random() % 6);
    for (auto& size : from_sizes) size = random() % 9;
    for (auto& size : to_sizes) size = random() % 9;
    Pieces from(from_sizes), to(to_sizes);
    for (auto& byte : from.bytes()) byte = static_cast<std::byte>(random());
    const std::uint64_t offset = to.bytes().empty() ? 0 : random() % to.bytes().size();
    const std::uint64_t length = std::min(from.bytes().size(), to.bytes().size() - offset);
    std::vector<std::byte> want = to.bytes();
    std::copy_n(from.bytes().begin(), length, want.begin() + static_cast<std::ptrdiff_t>(offset));
    scatter_copy(to.list(), offset, from.list(), length);
    ASSERT_EQ(to.bytes(), want) << "round " << round;
  }
}

}  // namespace
}  // namespace fairlead::base
