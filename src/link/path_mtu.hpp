#pragma once
// How long datagrams to one peer may be. The kernel knows the first link's MTU; that a path swallows what is longer is
// found here (as in RFC 8899), by probes that carry no data.
//
//   settled  size() is believed; nothing is asked
//   testing  rounds of two probes, one as long as the size in question and a small one. An answer to the long one
//            proves it; three rounds in which only small ones were answered disprove it; in which none was, they tell
//            nothing
//
// Begins with what the kernel says of the first link, and tests it at first contact. A segment lost several times in a
// row raises the suspicion of a black hole, and so does a hint (ICMP, which anybody can forge), at most one a second:
// the size is tested again. A size disproven is left for the least that every path carries, and a search goes up from
// there, first to what was hinted at. From time to time a search is tried again while traffic flows.

#include <cstdint>

#include "base/time.hpp"
#include "wire/segment.hpp"

namespace fairlead::link {

class PathMtu {
 public:
  static constexpr auto kLeast = static_cast<std::uint32_t>(wire::kDatagramSizeLeast);

  /// A session begins: datagrams of `goal` bytes are sent, and tested from `at` on.
  void open(std::uint32_t goal, base::Instant at);
  void close() { *this = {}; }
  /// What the kernel and both sides allow has changed.
  void set_goal(std::uint32_t goal, base::Instant now);

  /// Datagrams may be as long as this.
  std::uint32_t size() const { return size_; }
  /// An acknowledged segment of this length would prove the size that is being tested.
  bool is_proven_by(std::uint32_t size) const { return size >= tested_; }
  void on_proven(base::Instant now) { succeed(now); }
  /// A segment longer than kLeast was found lost, for the so-many-th time.
  void on_lost(std::uint32_t times, base::Instant now);
  /// Somebody, who may lie, says that no more than this passes.
  void on_hint(std::uint32_t size, base::Instant now);
  /// The number of a probe came back.
  void on_answer(wire::Sequence number, base::Instant now);

  /// When on_timer() is due, whether there is traffic or not.
  base::Instant due() const { return is_testing() ? round_at_ : base::kNever; }
  /// A new search is due, if there is traffic: nobody is woken for it.
  bool is_search_due(base::Instant now) const { return now >= search_at_; }
  /// `patience`: how long an answer may take.
  void on_timer(base::Duration patience, base::Instant now);

  /// A probe to send now: 0 for none, else its length.
  std::uint32_t wanted() const { return wants_long_ ? tested_ : wants_small_ ? kSmall : 0; }
  wire::Sequence number() const { return {wants_long_ ? number_ | kLongBit : number_}; }
  void on_sent() { (wants_long_ ? wants_long_ : wants_small_) = false; }
  /// The path did not take it.
  void want_again(std::uint32_t length) { (length == kSmall ? wants_small_ : wants_long_) = is_testing(); }

  /// Small ones come through, and nothing of `kLeast` bytes does.
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
  std::uint32_t failed_ = kNone;  // the least that was disproven
  std::uint32_t tested_ = kNone;
  std::uint32_t hinted_ = 0;        // to be tried first, once
  std::uint32_t number_ = 0;        // of this round's probes
  std::uint32_t number_first_ = 0;  // of this test's first round
  std::uint8_t rounds_ = 0, small_heard_ = 0;
  bool wants_long_ = false, wants_small_ = false;
  bool is_below_least_ = false;
  base::Instant round_at_ = base::kNever, search_at_ = base::kNever;
  base::Instant hints_at_{};  // the next may make a test
  base::Duration search_after_{};
};

}  // namespace fairlead::link
