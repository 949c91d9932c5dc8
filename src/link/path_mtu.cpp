#include "link/path_mtu.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

namespace fairlead::link {
namespace {

using namespace std::chrono_literals;

constexpr std::uint8_t kRounds = 3;
constexpr std::uint8_t kSmallEnough = 2;       // answers to small probes that make a verdict
constexpr std::uint8_t kRoundsInVainMost = 6;  // rounds until the test gives up without a verdict
constexpr base::Duration kPatienceMost = 1s;
constexpr std::uint32_t kLostInARow = 3;
constexpr base::Duration kHintsApart = 1s;
constexpr base::Duration kSearchAfter = 2s, kSearchAfterMost = 600s;

// UDP payloads of usual MTUs: IPv6's minimum, tunnels, Ethernet over IPv6 and IPv4, jumbo frames, loopback.
constexpr std::array<std::uint32_t, 10> kUsual{1232, 1372, 1412, 1452, 1472, 4052, 8952, 8972, 16'356, 65'507};

}  // namespace

void PathMtu::open(std::uint32_t goal, base::Instant at) {
  *this = {};
  goal_ = size_ = std::max(goal, kLeast);
  search_after_ = kSearchAfter;
  if (size_ > kLeast) test(size_, at);
}

void PathMtu::set_goal(std::uint32_t goal, base::Instant now) {
  goal = std::max(goal, kLeast);
  if (goal == goal_) return;
  const bool is_wider = goal > goal_;
  goal_ = goal;
  if (is_wider) {
    failed_ = kNone;
    return test(goal, now);
  }
  size_ = std::min(size_, goal);
  // The limit may be lower than what was under test, and still more than the path carries.
  if (failed_ > goal) failed_ = kNone;  // which says nothing about the new limit
  if (!is_testing() || tested_ <= goal) return;
  goal > kLeast ? test(goal, now) : search(now);
}

void PathMtu::test(std::uint32_t size, base::Instant now) {
  tested_ = size;
  rounds_ = small_heard_ = 0;
  number_first_ = (number_ + 1) & ~kLongBit;
  round_at_ = now;
}

void PathMtu::stop_testing() {
  tested_ = kNone;
  wants_long_ = wants_small_ = false;
}

void PathMtu::on_lost(std::uint32_t times, base::Instant now) {
  if (times >= kLostInARow && !is_testing()) test(size_, now);
}

void PathMtu::on_hint(std::uint32_t size, base::Instant now) {
  if (size >= size_) return;
  hinted_ = std::max(size, kLeast);
  if (is_testing() || now < hints_at_ || size_ == kLeast) return;
  hints_at_ = now + kHintsApart;
  test(size_, now);
}

void PathMtu::on_answer(wire::Sequence number, base::Instant now) {
  const std::uint32_t round = number.value & ~kLongBit;
  if (!is_testing() || rounds_ == 0 || round - number_first_ > number_ - number_first_) return;  // of an earlier test
  if ((number.value & kLongBit) != 0) return succeed(now);
  if (small_heard_ < kSmallEnough) ++small_heard_;
}

void PathMtu::succeed(base::Instant now) {
  is_below_least_ = false;
  if (tested_ <= size_ && search_at_ != base::kNever) return stop_testing();  // the size was only under suspicion
  size_ = std::max(size_, tested_);
  if (failed_ != kNone && failed_ <= size_) failed_ = kNone;
  search(now);
}

void PathMtu::fail(base::Instant now) {
  failed_ = tested_;
  is_below_least_ = tested_ == kLeast;
  if (size_ >= tested_) {
    // The path may have lost sizes that were proven before, too.
    size_ = kLeast;
    if (tested_ > kLeast) return test(kLeast, now);
  }
  search(now);
}

/// Tests the middle of the usual sizes that are still in question. If none is left, the search is settled, and tried
/// again later.
void PathMtu::search(base::Instant now) {
  stop_testing();
  search_at_ = base::kNever;
  const std::uint32_t below = std::min(failed_, goal_);
  if (const std::uint32_t hinted = std::exchange(hinted_, 0); hinted > size_ && hinted < below)
    return test(hinted, now);
  const auto* first = std::ranges::upper_bound(kUsual, size_);
  const auto* last = std::ranges::lower_bound(kUsual, below);
  if (first < last) return test(first[(last - first) / 2], now);
  if (failed_ == kNone && size_ < goal_) return test(goal_, now);
  if (size_ == goal_) {
    search_after_ = kSearchAfter;
    return;
  }
  search_at_ = now + search_after_;
  search_after_ = std::min(2 * search_after_, kSearchAfterMost);
}

void PathMtu::on_timer(base::Duration patience, base::Instant now) {
  if (!is_testing()) {
    if (now < search_at_) return;
    search_at_ = base::kNever;
    failed_ = kNone;
    return test(goal_, now);
  }
  if (now < round_at_) return;
  if (rounds_ >= kRounds && small_heard_ >= kSmallEnough) return fail(now);
  if (rounds_ == kRoundsInVainMost) {  // too few answers: that is not for this class to judge
    stop_testing();
    search_at_ = now + search_after_;
    return;
  }
  number_ = (number_ + 1) & ~kLongBit;
  wants_long_ = wants_small_ = true;
  round_at_ = now + std::min(patience * (1 << rounds_), std::max(patience, kPatienceMost));
  ++rounds_;
}

}  // namespace fairlead::link
