#include "base/saved.hpp"

#include <gtest/gtest.h>

namespace fairlead::base {
namespace {

struct Part {
  std::uint16_t number = 0;
  bool is_good = false;
  bool operator==(const Part&) const = default;
};
template <typename Archive>
void fields(Archive& archive, Part& part) {
  archive(part.number, part.is_good);
}

struct Whole {
  SocketAddress address;
  Instant at{};
  std::string text;
  std::vector<Part> parts;
  std::optional<Part> one, none;
  bool operator==(const Whole&) const = default;
};
template <typename Archive>
void fields(Archive& archive, Whole& whole) {
  archive(whole.address, whole.at, whole.text, whole.parts, whole.one, whole.none);
}

Whole example() {
  return {.address = SocketAddress::from_ip("10.0.0.5", 20480).value(),
          .at = Instant(Duration(123456789)),
          .text = "text",
          .parts = {{1, true}, {2, false}},
          .one = Part{3, true},
          .none = {}};
}

SavedBytes saved(Whole whole) {
  SavedWriter writer;
  writer(whole);
  return writer.bytes();
}

TEST(SavedTest, WhatWasWrittenIsRead) {
  const auto bytes = saved(example());
  SavedReader reader(bytes);
  Whole read;
  reader(read);
  EXPECT_TRUE(reader.is_at_end());
  EXPECT_EQ(read, example());
}

TEST(SavedTest, NothingIsReadBeyondTheEnd) {
  const auto bytes = saved(example());
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    SavedReader reader{std::span(bytes).first(length)};
    Whole read;
    reader(read);
    EXPECT_FALSE(reader.is_good()) << length << " of " << bytes.size() << " bytes";
  }
}

TEST(SavedTest, BytesThatAreLeftAreToldApart) {
  auto bytes = saved(example());
  bytes.push_back({});
  SavedReader reader(bytes);
  Whole read;
  reader(read);
  EXPECT_TRUE(reader.is_good());
  EXPECT_FALSE(reader.is_at_end());
}

TEST(SavedTest, AListIsNoLongerThanTheBytesThatAreLeft) {
  SavedWriter writer;
  std::uint32_t length = 1U << 30;
  writer(length);
  SavedReader reader(writer.bytes());
  std::vector<Part> parts;
  reader(parts);
  EXPECT_FALSE(reader.is_good());
  EXPECT_TRUE(parts.empty());
}

TEST(SavedTest, ATruthIsZeroOrOne) {
  SavedWriter writer;
  std::uint8_t two = 2;
  writer(two);
  SavedReader reader(writer.bytes());
  bool truth = false;
  reader(truth);
  EXPECT_FALSE(reader.is_good());
}

}  // namespace
}  // namespace fairlead::base
