#pragma once
// Path MTU discovery for one peer, as in RFC 8899. The kernel knows only the first link's MTU. Probes that carry no
// data find out whether the path silently drops longer datagrams.
//
//   settled  size() is in use; no probe is sent
//   testing  Rounds of two probes: one of the size under test, and a small one. An answer to the long one
//            proves the size. The size is disproven if, after at least three rounds, two small ones and no
//            long one were answered. After six rounds without a result the test stops.
//
// A session begins with the size that the kernel reports, and tests it at first contact. Two events raise the suspicion
// of a black hole, and the size is tested again: a segment lost several times in a row, and a hint (ICMP, which can be
// forged; at most one a second). A disproven size is replaced by the least that every path carries. A search goes up
// from there, beginning with the size of a hint if there was one. From time to time, while traffic flows, the search is
// tried again.

#include <cstdint>

#include "base/time.hpp"
#include "wire/segment.hpp"

namespace fairlead::link {

class PathMtu {
 public:
  static constexpr auto kLeast = static_cast<std::uint32_t>(wire::kDatagramSizeLeast);

  /// Begins a session: datagrams of `goal` bytes are sent, and tested from `at` on.
  void open(std::uint32_t goal, base::Instant at);
  void close() { *this = {}; }
  /// Sets the limit after the kernel's or the peer's has changed.
  void set_goal(std::uint32_t goal, base::Instant now);

  /// Length up to which datagrams may be sent, in bytes.
  std::uint32_t size() const { return size_; }
  /// Returns whether an acknowledged segment of this length proves the size under test.
  bool is_proven_by(std::uint32_t size) const { return size >= tested_; }
  void on_proven(base::Instant now) { succeed(now); }
  /// Reports that a segment longer than kLeast was found lost for the `times`-th time.
  void on_lost(std::uint32_t times, base::Instant now);
  /// Reports an ICMP "too big" message, which may be forged.
  void on_hint(std::uint32_t size, base::Instant now);
  /// Handles an answer to the probe with this number.
  void on_answer(wire::Sequence number, base::Instant now);

  /// When on_timer() is due, with or without traffic.
  base::Instant due() const { return is_testing() ? round_at_ : base::kNever; }
  /// Returns whether a new search is due. It only runs while there is traffic; no thread wakes for it.
  bool is_search_due(base::Instant now) const { return now >= search_at_; }
  /// `patience`: how long an answer may take.
  void on_timer(base::Duration patience, base::Instant now);

  /// Length of the probe to send now; 0 for none.
  std::uint32_t wanted() const { return wants_long_ ? tested_ : wants_small_ ? kSmall : 0; }
  wire::Sequence number() const { return {wants_long_ ? number_ | kLongBit : number_}; }
  void on_sent() { (wants_long_ ? wants_long_ : wants_small_) = false; }
  /// Queues a probe again that the path did not take.
  void want_again(std::uint32_t length) { (length == kSmall ? wants_small_ : wants_long_) = is_testing(); }

  /// True if small probes pass and datagrams of `kLeast` bytes do not.
  bool is_below_least() const { return is_below_least_; }
  bool is_testing() const { return tested_ != kNone; }

 private:
  static constexpr std::uint32_t kNone = ~0U;
  static constexpr std::uint32_t kLongBit = 1U << 31;
  static constexpr std::uint32_t kSmall = wire::kSegmentHeaderBytes;

  void test(std::uint32_t size, base::Instant now);
  void stop_testing();
  void succeed(base::Instant now);
  void fail(base::Instant now);
  void search(base::Instant now);

  std::uint32_t goal_ = kLeast, size_ = kLeast;
  std::uint32_t failed_ = kNone;  // smallest size that was disproven
  std::uint32_t tested_ = kNone;
  std::uint32_t hinted_ = 0;        // tried first, once
  std::uint32_t number_ = 0;        // round number of the current probes
  std::uint32_t number_first_ = 0;  // number of this test's first round
  std::uint8_t rounds_ = 0, small_heard_ = 0;
  bool wants_long_ = false, wants_small_ = false;
  bool is_below_least_ = false;
  base::Instant round_at_ = base::kNever, search_at_ = base::kNever;
  base::Instant hints_at_{};  // when the next hint may start a test
  base::Duration search_after_{};
};

}  // namespace fairlead::link
