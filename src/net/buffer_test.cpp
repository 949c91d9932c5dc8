#include <fairlead/net/buffer.hpp>

#include <gtest/gtest.h>

#include <array>
#include <string_view>

#include "net/domain_state.hpp"

namespace fairlead::net {
namespace {

class BufferTest : public ::testing::Test {
 protected:
  Domain domain_ = Domain::open().value();
};

TEST_F(BufferTest, OwnsZeroedMemory) {
  const auto buffer = Buffer::allocate(domain_, 10000).value();
  EXPECT_EQ(buffer->size(), 10000U);
  EXPECT_EQ(buffer->segment_count(), 1U);
  EXPECT_EQ(buffer->segment(0).size(), 10000U);
  EXPECT_EQ(buffer->segment(0)[9999], std::byte{0});
  EXPECT_TRUE(buffer->segment(1).empty());
  EXPECT_FALSE(buffer->is_queued());
  EXPECT_EQ(buffer->descriptor(), BufferDescriptor{});
}

TEST_F(BufferTest, GatherAndScatter) {
  std::array<std::byte, 3> first{};
  std::array<std::byte, 1> second{};
  std::array<std::byte, 4> third{};
  const std::array<std::span<std::byte>, 3> segments{first, second, third};
  const auto buffer = Buffer::borrow(domain_, segments).value();
  EXPECT_EQ(buffer->size(), 8U);
  EXPECT_EQ(buffer->segment_count(), 3U);

  constexpr std::string_view kText = "abcdefgh";
  EXPECT_EQ(buffer->write(0, std::as_bytes(std::span(kText))), 8U);
  EXPECT_EQ(first[2], std::byte{'c'});
  EXPECT_EQ(second[0], std::byte{'d'});
  EXPECT_EQ(third[3], std::byte{'h'});

  std::array<std::byte, 4> middle{};
  EXPECT_EQ(buffer->read(2, middle), 4U);
  EXPECT_EQ(middle[0], std::byte{'c'});
  EXPECT_EQ(middle[3], std::byte{'f'});
  EXPECT_EQ(buffer->read(6, middle), 2U);
  EXPECT_EQ(buffer->read(8, middle), 0U);
  EXPECT_EQ(buffer->write(7, middle), 1U);

  EXPECT_EQ(buffer->bytes(1, 8).data(), &first[1]);
  EXPECT_EQ(buffer->bytes(1, 8).size(), 2U);
  EXPECT_EQ(buffer->bytes(4, 2).data(), &third[0]);
  EXPECT_EQ(buffer->bytes(4, 2).size(), 2U);
  EXPECT_TRUE(buffer->bytes(8, 1).empty());
}

TEST_F(BufferTest, RefusesWhatCannotBe) {
  EXPECT_EQ(Buffer::allocate(domain_, 0).error().status, Status::invalid);
  EXPECT_EQ(Buffer::allocate(domain_, domain_.buffer_size_max() + 1).error().status, Status::too_big);
  EXPECT_EQ(Buffer::borrow(domain_, std::span<const std::span<std::byte>>()).error().status, Status::invalid);
  EXPECT_EQ(Buffer::borrow(domain_, std::span<std::byte>()).error().status, Status::invalid);
  std::byte byte{};
  const std::vector<std::span<std::byte>> many(domain_.segments_max() + 1, std::span(&byte, 1));
  EXPECT_EQ(Buffer::borrow(domain_, many).error().status, Status::too_big);
  const std::vector<std::span<std::byte>> most(domain_.segments_max(), std::span(&byte, 1));
  EXPECT_TRUE(Buffer::borrow(domain_, most));
}

TEST_F(BufferTest, TheDomainKnowsWhoIsLeft) {
  auto buffer = Buffer::allocate(domain_, 1).value();
  const auto refused = domain_.close();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().status, Status::bad_state);
  EXPECT_TRUE(buffer->close());
  EXPECT_TRUE(buffer->close());
  EXPECT_TRUE(domain_.close());
  EXPECT_EQ(Buffer::allocate(domain_, 1).error().status, Status::bad_state);
}

TEST_F(BufferTest, OutlivesTheDomainsHandle) {
  auto buffer = [] {
    Domain domain = Domain::open().value();
    return Buffer::allocate(domain, 16).value();
  }();
  EXPECT_EQ(buffer->write(0, std::as_bytes(std::span("x", 1))), 1U);
}

TEST(DomainTest, SettingsAreChecked) {
  EXPECT_TRUE(Domain::open({.engine = {{"ack_delay", "50"}}}));
  EXPECT_FALSE(Domain::open({.engine = {{"no_such_setting", "1"}}}));
  EXPECT_FALSE(Domain::open({.engine = {{"ack_delay", "soon"}}}));
}

}  // namespace
}  // namespace fairlead::net
