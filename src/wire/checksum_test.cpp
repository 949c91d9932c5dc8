#include "wire/checksum.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string_view>
#include <vector>

namespace fairlead::wire {
namespace {

std::uint32_t of(std::span<const std::byte> bytes) {
  Checksum checksum;
  checksum.add(bytes);
  return checksum.value();
}

TEST(Checksum, KnownVectorsOfCrc32c) {
  EXPECT_EQ(of(std::as_bytes(std::span(std::string_view("123456789")))), 0xE3069283U);
  // RFC 3720, appendix B.4.
  std::array<std::byte, 32> bytes{};
  EXPECT_EQ(of(bytes), 0x8A9136AAU);
  bytes.fill(std::byte{0xff});
  EXPECT_EQ(of(bytes), 0x62A8AB43U);
  for (std::size_t i = 0; i < 32; ++i) bytes[i] = static_cast<std::byte>(i);
  EXPECT_EQ(of(bytes), 0x46DD794EU);
  EXPECT_EQ(of({}), 0U);
}

TEST(Checksum, PiecesGiveTheSameAsTheWhole) {
  std::vector<std::byte> bytes(5000);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 31);
  for (std::size_t cut : {0UL, 1UL, 7UL, 48UL, 4999UL, 5000UL}) {
    const std::array<iovec, 2> pieces{{{bytes.data(), cut}, {bytes.data() + cut, bytes.size() - cut}}};
    Checksum checksum;
    checksum.add(pieces);
    EXPECT_EQ(checksum.value(), of(bytes)) << cut;
  }
}

TEST(Checksum, EveryLengthAgreesWithOneByteAtATime) {
  std::vector<std::byte> bytes(600);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 37 + 11);
  Checksum slow;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    ASSERT_EQ(of(std::span(bytes).first(size)), slow.value()) << size;
    slow.add(std::span(bytes).subspan(size, 1));
  }
}

}  // namespace
}  // namespace fairlead::wire
