#pragma once
// For tests of both sides: a queue of numbered elements in one or more segments; each side has its own table.

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "queue/consumer.hpp"
#include "queue/producer.hpp"
#include "queue/shared_segment.hpp"

namespace fairlead::queue {

/// Memory by segment number, shared by two processes (or two mappings in one).
class SharedSegments final : public SegmentSource {
 public:
  SegmentNumber add(std::size_t bytes) {
    auto segment = SharedSegment::create(bytes);
    EXPECT_TRUE(segment.has_value());
    segments_[used_] = std::move(*segment);
    return {used_++};
  }
  std::span<std::byte> map(SegmentNumber number) override { return segments_[number.value].span(); }
  int descriptor(SegmentNumber number) const { return segments_[number.value].descriptor(); }

 private:
  std::array<SharedSegment, kSegmentsMax> segments_;
  std::uint32_t used_ = 0;
};

/// The same segments, mapped a second time at other addresses on first use.
class SecondMapping final : public SegmentSource {
 public:
  explicit SecondMapping(const SharedSegments& segments) : shared_(segments) {}
  std::span<std::byte> map(SegmentNumber number) override {
    auto segment = SharedSegment::map(shared_.descriptor(number));
    if (!segment) return {};
    ++mapped;
    segments_[number.value] = std::move(*segment);
    return segments_[number.value].span();
  }
  int mapped = 0;

 private:
  const SharedSegments& shared_;
  std::array<SharedSegment, kSegmentsMax> segments_;
};

inline Consumer make_consumer(std::span<std::byte> memory, const Geometry& geometry) {
  auto consumer = Consumer::create(memory, geometry);
  EXPECT_TRUE(consumer.has_value()) << consumer.error().message;
  return std::move(*consumer);
}

inline Producer make_producer(SegmentSource& source) {
  auto producer = Producer::attach(source);
  EXPECT_TRUE(producer.has_value()) << producer.error().message;
  return std::move(*producer);
}

/// Puts `number` into every word of an element; returns false if there was none.
inline bool put_number(Producer& producer, std::uint64_t number) {
  auto* element = producer.pnext();
  if (element == nullptr) return false;
  for (std::uint32_t at = 0; at < producer.element_bytes(); at += 8) std::memcpy(element + at, &number, sizeof number);
  producer.put();
  return true;
}

inline std::uint64_t number_in(const std::byte* element) {
  std::uint64_t number = 0;
  std::memcpy(&number, element, sizeof number);
  return number;
}

/// Takes an element and compares it; returns false if there was none.
inline bool get_number(Consumer& consumer, std::uint64_t expected) {
  const auto* element = consumer.get();
  if (element == nullptr) return false;
  EXPECT_EQ(number_in(element), expected);
  return true;
}

}  // namespace fairlead::queue
