#include "tools/nettest/stamp.hpp"

#include <gtest/gtest.h>

#include <array>
#include <tuple>

namespace fairlead::tools {
namespace {

constexpr NettestStamp kStamp{.client = 0x0807'0605'0403'0201, .slot = 0x1413'1211, .sequence = 0x2827'2625'2423'2221};

TEST(NettestStamp, IsReadAsItWasWritten) {
  std::array<std::byte, kStampBytes + 3> message{};
  write_stamp(message, kStamp);
  EXPECT_EQ(read_stamp(message), kStamp);
  EXPECT_EQ(message[4], std::byte{0x11}) << "the slot, the lowest byte first";
  EXPECT_EQ(message[8], std::byte{0x01}) << "the client";
  EXPECT_EQ(message[16], std::byte{0x21}) << "the sequence";
}

TEST(NettestStamp, WhatIsShortOrOfSomethingElseIsNone) {
  std::array<std::byte, kStampBytes> message{};
  EXPECT_EQ(read_stamp(message), std::nullopt);
  write_stamp(message, kStamp);
  for (std::size_t size = 0; size < kStampBytes; ++size)
    EXPECT_EQ(read_stamp(std::span(message).first(size)), std::nullopt) << size;
  for (std::size_t i = 0; i < 4; ++i) {
    auto other = message;
    other.at(i) ^= std::byte{1};
    EXPECT_EQ(read_stamp(other), std::nullopt) << "byte " << i << " of the magic";
  }
}

// Bytes of another round trip count as bad.
TEST(NettestStamp, EachRoundTripHasAPayloadOfItsOwn) {
  const auto name = [](const NettestStamp& stamp) {
    const PayloadName payload = stamp.payload();
    return std::tuple(payload.client, payload.thread, payload.loop);
  };
  for (auto change : {+[](NettestStamp& stamp) { ++stamp.client; }, +[](NettestStamp& stamp) { ++stamp.slot; },
                      +[](NettestStamp& stamp) { ++stamp.sequence; }}) {
    NettestStamp other = kStamp;
    change(other);
    EXPECT_NE(name(other), name(kStamp));
  }
}

}  // namespace
}  // namespace fairlead::tools
