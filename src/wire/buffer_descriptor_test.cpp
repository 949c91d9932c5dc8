#include "wire/buffer_descriptor.hpp"

#include <gtest/gtest.h>

#include "wire/checksum.hpp"

namespace fairlead::wire {
namespace {

using Bytes = std::array<std::byte, kBufferDescriptorBytes>;

BufferDescriptor sample() {
  BufferDescriptor descriptor;
  descriptor.engine = base::SocketAddress::from_ip("10.0.0.5", 20480).value();
  descriptor.port = 34U << 12 | 7;
  descriptor.queue = 3;
  descriptor.epoch = 0x1122334455667788;
  descriptor.key = 0x99aabbccddeeff01;
  descriptor.size = 1U << 30;
  return descriptor;
}

Bytes encoded(const BufferDescriptor& descriptor) {
  Bytes bytes;
  encode(descriptor, bytes);
  return bytes;
}

void reseal(Bytes& bytes) {
  Checksum checksum;
  checksum.add(std::span(bytes).first(60));
  store(bytes.data(), 60, checksum.value());
}

TEST(BufferDescriptor, SurvivesTheWay) {
  const Bytes bytes = encoded(sample());
  EXPECT_EQ(find_fault(bytes), std::nullopt);
  EXPECT_EQ(read_descriptor(bytes), sample());
  EXPECT_TRUE(is_possible(sample()));
}

TEST(BufferDescriptor, IsTheSameOnEveryHost) {
  const Bytes bytes = encoded(sample());
  EXPECT_EQ(bytes[0], std::byte{'F'});
  EXPECT_EQ(bytes[4], std::byte{1});
  EXPECT_EQ(bytes[5], std::byte{3});
  EXPECT_EQ(bytes[8], std::byte{0x88});
  EXPECT_EQ(bytes[15], std::byte{0x11});
  EXPECT_EQ(bytes[47], std::byte{5});
}

TEST(BufferDescriptor, AnotherLengthIsRefused) {
  const Bytes bytes = encoded(sample());
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_EQ(find_fault(std::span(bytes).first(length)), DescriptorFault::length);
  }
  std::array<std::byte, kBufferDescriptorBytes + 1> longer{};
  EXPECT_EQ(find_fault(longer), DescriptorFault::length);
}

TEST(BufferDescriptor, EachFlippedBitIsSeen) {
  for (std::size_t bit = 0; bit < kBufferDescriptorBytes * 8; ++bit) {
    Bytes bytes = encoded(sample());
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_EQ(find_fault(bytes), DescriptorFault::checksum) << "bit " << bit;
  }
}

// Two equal flips, which cancel in an exclusive-or checksum.
TEST(BufferDescriptor, EachPairOfFlippedWordsIsSeen) {
  for (std::size_t first = 0; first < kBufferDescriptorBytes; ++first) {
    for (std::size_t second = first + 8; second < kBufferDescriptorBytes; second += 8) {
      Bytes bytes = encoded(sample());
      bytes[first] ^= std::byte{0xff};
      bytes[second] ^= std::byte{0xff};
      EXPECT_EQ(find_fault(bytes), DescriptorFault::checksum);
    }
  }
}

TEST(BufferDescriptor, WellSealedNonsenseIsRefused) {
  for (const auto& [offset, fault] : {std::pair{std::size_t{0}, DescriptorFault::magic},
                                      {std::size_t{4}, DescriptorFault::version},
                                      {std::size_t{52}, DescriptorFault::version},
                                      {std::size_t{56}, DescriptorFault::version}}) {
    Bytes bytes = encoded(sample());
    bytes[offset] ^= std::byte{2};
    reseal(bytes);
    EXPECT_EQ(find_fault(bytes), fault) << "offset " << offset;
  }
}

TEST(BufferDescriptor, ImpossibleFieldsAreKnown) {
  const auto with = [](auto&& change) {
    BufferDescriptor descriptor = sample();
    change(descriptor);
    return is_possible(descriptor);
  };
  EXPECT_FALSE(with([](auto& d) { d.epoch = 0; }));
  EXPECT_FALSE(with([](auto& d) { d.key = 0; }));
  EXPECT_FALSE(with([](auto& d) { d.size = 0; }));
  EXPECT_FALSE(with([](auto& d) { d.engine.port = 0; }));
  EXPECT_FALSE(with([](auto& d) { d.port = 34U << 12; }));
  EXPECT_FALSE(with([](auto& d) { d.port = 7; }));
  EXPECT_FALSE(with([](auto& d) { d.port = 64U << 12 | 7; }));
}

}  // namespace
}  // namespace fairlead::wire
