#pragma once
// Copies between buffers of different segmentation, as Motr's test `buf_copy` makes them. A copy is a message, a put or
// a get.

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "net/record_for_tests.hpp"

namespace fairlead::net {

/// Equal segments of source and target.
struct CopyShape {
  const char* name;
  std::uint32_t from_segments, from_size;
  std::uint32_t to_segments, to_size;
};

inline constexpr std::array<CopyShape, 10> kCopyShapes{{{"OneToOne", 1, 40, 1, 40},
                                                        {"OneToFew", 1, 40, 4, 10},
                                                        {"FewToOne", 4, 10, 1, 40},
                                                        {"FewToFew", 4, 10, 4, 10},
                                                        {"SmallToLarge", 5, 8, 2, 20},
                                                        {"LargeToSmall", 2, 20, 5, 8},
                                                        {"BytesToOne", 40, 1, 1, 40},
                                                        {"OneToBytes", 1, 40, 40, 1},
                                                        {"EachIntoTwo", 3, 14, 6, 7},
                                                        {"AcrossTheEnds", 8, 5, 3, 14}}};

/// Segments of a buffer, with a gap before each, between them and after the last.
class GappedMemory {
 public:
  GappedMemory(std::uint32_t segments, std::size_t size) : bytes_((size + kGap) * segments + kGap, kGapByte) {
    for (std::uint32_t i = 0; i < segments; ++i)
      segments_.push_back(std::span(bytes_).subspan(kGap + i * (size + kGap), size));
  }
  std::span<const std::span<std::byte>> segments() const { return segments_; }

  /// Returns byte `place` of the buffer that these segments make up.
  std::byte& at(std::size_t place) {
    const std::size_t size = segments_.front().size();
    return segments_[place / size][place % size];
  }
  bool has_its_gaps() const {
    const std::size_t step = segments_.front().size() + kGap;
    for (std::size_t begin = 0; begin < bytes_.size(); begin += step)
      for (std::size_t i = 0; i < kGap; ++i)
        if (bytes_[begin + i] != kGapByte) return false;
    return true;
  }

 private:
  static constexpr std::size_t kGap = 3;
  static constexpr std::byte kGapByte{0xee};

  std::vector<std::byte> bytes_;
  std::vector<std::span<std::byte>> segments_;
};

enum class CopyKind : std::uint8_t { message, put, get };
inline constexpr std::array kCopyKinds{CopyKind::message, CopyKind::put, CopyKind::get};

/// One copy from a buffer of `near` to one of `far`; a get is made by `far`. The last byte of the source stays.
class Copy {
 public:
  /// `scale`: by how much each segment is longer than its shape says.
  Copy(const CopyShape& shape, std::size_t scale)
      : from_memory_(shape.from_segments, shape.from_size * scale),
        to_memory_(shape.to_segments, shape.to_size * scale),
        length_(std::uint64_t{shape.from_segments} * shape.from_size * scale - 1) {
    for (std::size_t i = 0; i < length_; ++i) from_memory_.at(i) = byte_at(i);
  }

  void begin(CopyKind kind, Domain& near_domain, TransferMachine& near, Domain& far_domain, TransferMachine& far) {
    from_ = Buffer::borrow(near_domain, from_memory_.segments()).value();
    to_ = Buffer::borrow(far_domain, to_memory_.segments()).value();
    ASSERT_EQ(from_->set_callback(record_.callback()), Status::ok);
    ASSERT_EQ(to_->set_callback(record_.callback()), Status::ok);
    if (kind == CopyKind::message) {
      const EndPoint there = near.create_end_point(far.end_point().address()).value();
      ASSERT_EQ(far.add(*to_, MessageReceive{.size_min = length_}), Status::ok);
      ASSERT_EQ(near.add(*from_, MessageSend{.to = there, .length = length_}), Status::ok);
    } else if (kind == CopyKind::put) {
      ASSERT_EQ(far.add(*to_, PassiveReceive{}), Status::ok);
      ASSERT_EQ(near.add(*from_, ActiveSend{.descriptor = to_->descriptor(), .length = length_}), Status::ok);
    } else {
      ASSERT_EQ(near.add(*from_, PassiveSend{.length = length_}), Status::ok);
      ASSERT_EQ(far.add(*to_, ActiveReceive{.descriptor = from_->descriptor()}), Status::ok);
    }
  }
  /// Each buffer has one event.
  Record& record() { return record_; }
  static constexpr std::size_t kEvents = 2;

  /// After both events.
  void expect_done() {
    for (const Record::Entry& event : record_.entries()) {
      EXPECT_EQ(event.status, Status::ok);
      EXPECT_TRUE(event.is_final);
      if (event.queue == QueueKind::message_receive || event.queue == QueueKind::passive_bulk_receive ||
          event.queue == QueueKind::active_bulk_receive) {
        EXPECT_EQ(event.length, length_);
      }
    }
    for (std::size_t i = 0; i < length_; ++i) ASSERT_EQ(to_memory_.at(i), byte_at(i)) << "byte " << i;
    EXPECT_EQ(to_memory_.at(length_), std::byte{0xee}) << "beyond the end";
    EXPECT_TRUE(to_memory_.has_its_gaps());
  }

 private:
  static std::byte byte_at(std::size_t place) { return static_cast<std::byte>(place * 131 % 251); }

  GappedMemory from_memory_, to_memory_;
  std::uint64_t length_;
  Record record_;
  std::unique_ptr<Buffer> from_, to_;  // go first
};

}  // namespace fairlead::net
