// The two halves of the window, the reassembly table and the round trip, each alone.

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "link/hotel.hpp"
#include "link/peer.hpp"
#include "link/reassembly.hpp"
#include "link/receive_window.hpp"
#include "link/round_trip.hpp"
#include "link/send_window.hpp"
#include "link/token_source.hpp"

namespace fairlead::link {
namespace {

using Verdict = ReceiveWindow::Verdict;
using namespace std::chrono_literals;

TEST(SendWindow, WrapsFullAndFreesInAnyOrder) {
  constexpr std::uint32_t kCapacity = 64;
  SendWindow window;
  window.open({0xfffffff0}, kCapacity);
  std::vector<Segment> segments(kCapacity);
  ASSERT_TRUE(window.reserve(kCapacity));
  for (Segment& segment : segments) window.put(segment);
  EXPECT_TRUE(window.is_full());
  EXPECT_EQ(window.next().value, 0x30U);
  EXPECT_EQ(window.find({0x30}), nullptr);
  EXPECT_EQ(window.find({0xffffffef}), nullptr);
  for (std::size_t i = kCapacity; i-- > 1;) window.remove(segments[i]);  // the oldest last
  EXPECT_EQ(window.in_flight(), 1U);
  EXPECT_TRUE(window.is_full());
  window.remove(segments[0]);
  EXPECT_EQ(window.oldest(), window.next());
  EXPECT_FALSE(window.is_full());
  window.release_ring();
  EXPECT_FALSE(window.has_ring());
}

TEST(ReceiveWindow, JudgesItsEdges) {
  ReceiveWindow window;
  window.open({0xfffffffe}, 64);
  EXPECT_EQ(window.judge({0xfffffffd}), Verdict::too_old);
  EXPECT_EQ(window.judge({0xfffffffe}), Verdict::fresh);
  EXPECT_EQ(window.judge({0x3d}), Verdict::fresh);
  EXPECT_EQ(window.judge({0x3e}), Verdict::too_new);
  window.mark({0x3d});
  EXPECT_EQ(window.judge({0x3d}), Verdict::duplicate);
  EXPECT_EQ(window.bitmap(0), std::uint64_t{1} << 62);
  for (std::uint32_t i = 0; i < 63; ++i) window.mark(wire::Sequence{0xfffffffe} + i);
  EXPECT_EQ(window.next().value, 0x3eU);
  EXPECT_EQ(window.ahead(), 0U);
  EXPECT_EQ(window.bitmap(0), 0U);
}

TEST(ReceiveWindow, AgreesWithASetInAnyOrder) {
  std::mt19937_64 random(1);
  for (std::uint32_t capacity : {64U, 128U, 1024U}) {
    ReceiveWindow window;
    const wire::Sequence first{0xffffff00};
    window.open(first, capacity);
    std::set<std::uint32_t> arrived;  // as distances from `first`
    std::uint32_t next = 0;
    for (int i = 0; i < 20'000; ++i) {
      const std::uint32_t step = next + static_cast<std::uint32_t>(random() % (random() % 2 ? 4 : capacity));
      const bool is_new = arrived.insert(step).second;
      ASSERT_EQ(window.judge(first + step), is_new ? Verdict::fresh : Verdict::duplicate);
      if (is_new) window.mark(first + step);
      while (arrived.contains(next)) ++next;
      ASSERT_EQ(window.next(), first + next);
      std::uint64_t expected = 0;
      const auto word = static_cast<std::uint32_t>(random() % (capacity / 64));
      for (std::uint32_t bit = 0; bit < 64; ++bit) {
        if (arrived.contains(next + 1 + 64 * word + bit)) expected |= std::uint64_t{1} << bit;
      }
      if (64 * (word + 1) < capacity) {
        ASSERT_EQ(window.bitmap(word), expected);
      }
      ASSERT_EQ(window.bitmap_words(), *arrived.rbegin() < next ? 0 : (*arrived.rbegin() - next + 63) / 64);
    }
  }
}

wire::Record chunk(std::uint32_t slot, std::uint32_t message, std::uint64_t size, std::uint64_t offset,
                   std::span<const std::byte> bytes) {
  return {.kind = wire::RecordKind::chunk, .envelope = {}, .chunk = {message, slot, size, offset}, .bytes = bytes};
}

TEST(Reassembly, CountsBytesAndClosesWithTheLast) {
  Reassembly table(4);
  const std::array<std::byte, 100> bytes{};
  EXPECT_FALSE(table.take(chunk(3, 7, 250, 100, bytes)).is_open);
  table.set_target(3, 99);
  const Reassembly::Slot before = table.take(chunk(3, 7, 250, 0, bytes));
  EXPECT_TRUE(before.is_open);
  EXPECT_EQ(before.target, 99U);
  EXPECT_EQ(table.open_count(), 1U);
  EXPECT_EQ(table.take(chunk(3, 7, 250, 200, std::span(bytes).first(50))).bytes_left, 50U);
  EXPECT_EQ(table.open_count(), 0U);
  table.release_slots();
  EXPECT_FALSE(table.has_slots());
}

TEST(Reassembly, RefusesWhatDoesNotAgree) {
  Reassembly table(4);
  const std::array<std::byte, 100> bytes{};
  using Judged = Reassembly::Verdict;
  EXPECT_EQ(table.judge(chunk(4, 1, 200, 0, bytes)), Judged::no_slot);
  EXPECT_EQ(table.judge(chunk(0, 1, 99, 0, bytes)), Judged::bad_chunk);
  EXPECT_EQ(table.judge(chunk(0, 1, 200, 101, bytes)), Judged::bad_chunk);
  EXPECT_EQ(table.judge(chunk(0, 1, 200, ~0ULL, bytes)), Judged::bad_chunk);
  EXPECT_EQ(table.judge(chunk(0, 1, 200, 0, {})), Judged::bad_chunk);
  table.take(chunk(0, 1, 150, 0, bytes));
  EXPECT_EQ(table.judge(chunk(0, 2, 150, 0, bytes)), Judged::no_slot);  // two live messages in one slot
  EXPECT_EQ(table.judge(chunk(0, 1, 151, 51, bytes)), Judged::bad_chunk);
  EXPECT_EQ(table.judge(chunk(0, 1, 150, 50, bytes)), Judged::bad_chunk);  // more than is left
  wire::Record other = chunk(0, 1, 150, 100, std::span(bytes).first(50));
  EXPECT_EQ(table.judge(other), Judged::fits);
  other.envelope.key = 1;
  EXPECT_EQ(table.judge(other), Judged::bad_chunk);
}

TEST(Reassembly, WhatIsTakenBackIsClosedAndRemembered) {
  Reassembly table(4);
  const std::array<std::byte, 100> bytes{};
  EXPECT_FALSE(table.take_void({.message = 7, .slot = 4}).is_open) << "no such slot";
  EXPECT_FALSE(table.take_void({.message = 7, .slot = wire::kNoSlot}).is_open);
  EXPECT_FALSE(table.has_slots());
  table.take(chunk(3, 7, 250, 100, bytes));
  table.set_target(3, 99);
  EXPECT_FALSE(table.take_void({.message = 6, .slot = 3}).is_open) << "another message";
  EXPECT_EQ(table.open_count(), 1U);
  const Reassembly::Slot closed = table.take_void({.message = 7, .slot = 3});
  EXPECT_TRUE(closed.is_open);
  EXPECT_EQ(closed.target, 99U);
  EXPECT_EQ(table.open_count(), 0U);
  EXPECT_TRUE(table.is_void({.message = 7, .slot = 3}));
  EXPECT_FALSE(table.is_void({.message = 8, .slot = 3}));
  table.release_slots();
  EXPECT_TRUE(table.is_void({.message = 7, .slot = 3})) << "late chunks may still come";
  table.take(chunk(3, 8, 100, 0, bytes));
  EXPECT_TRUE(table.is_void({.message = 7, .slot = 3}));
  table.reset();
  EXPECT_FALSE(table.is_void({.message = 7, .slot = 3}));
}

TEST(RoundTrip, IsSmoothedAndKeepsTheLeast) {
  RoundTrip round_trip;
  EXPECT_FALSE(round_trip.is_known());
  round_trip.add(100us);
  EXPECT_EQ(round_trip.smoothed(), 100us);
  EXPECT_EQ(round_trip.variation(), 50us);
  round_trip.add(180us);
  EXPECT_EQ(round_trip.smoothed(), 110us);
  EXPECT_EQ(round_trip.variation(), 57500ns);
  EXPECT_EQ(round_trip.latest(), 180us);
  EXPECT_EQ(round_trip.least(), 100us);
  for (int i = 0; i < 1000; ++i) round_trip.add(50us);
  EXPECT_NEAR(static_cast<double>(round_trip.smoothed().count()), 50'000.0, 10.0);
}

TEST(Hotel, ChecksInAndOutUpToItsBound) {
  Hotel hotel(70);
  Peer peer({}, 1);
  std::vector<Segment*> guests;
  for (int i = 0; i < 70; ++i) {
    Segment* segment = i % 2 == 0 ? hotel.check_in(peer) : hotel.check_in_with_block(peer);
    ASSERT_NE(segment, nullptr);
    EXPECT_EQ(segment->block != nullptr, i % 2 == 1);
    guests.push_back(segment);
  }
  EXPECT_TRUE(hotel.is_full());
  for (Segment* guest : guests) hotel.check_out(*guest);
  EXPECT_EQ(hotel.guests(), 0U);
}

TEST(TokenSource, IsFixedBySeedAndNeverRepeats) {
  TokenSource a(1, 2), b(1, 2), c(2, 2);
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t number = a.next();
    EXPECT_EQ(number, b.next());
    EXPECT_NE(number, c.next());
    EXPECT_TRUE(seen.insert(number).second);
  }
}

}  // namespace
}  // namespace fairlead::link
