#pragma once
// A timer wheel: objects sorted by their due time. Adding and removing take O(1), however many there are. The links are
// in the objects, and nothing is allocated.
//
// A tick is 8 us. Level and slot of an object follow from the highest digit (of 6 bits) in which its tick differs from
// the current one. When time reaches a slot its objects move to lower levels, each at most once per level. So for
// distant objects the wheel knows only when to look again; within the current tick it knows the exact time.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include <boost/intrusive/list.hpp>

namespace fairlead::base {

using TimerWheelHook = boost::intrusive::list_member_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

template <typename T, TimerWheelHook T::* kHook, typename Instant, Instant T::* kDue>
class TimerWheel {
 public:
  void add(T& object) {
    place(object);
    ++count_;
  }
  /// No effect on an object that is not in the wheel.
  void remove(T& object) {
    if (!(object.*kHook).is_linked()) return;
    (object.*kHook).unlink();
    --count_;
  }
  bool is_empty() const { return count_ == 0; }
  /// A time not later than the first due time; kNever (the latest time) if the wheel is empty. Look again then.
  Instant earliest() {
    if (!due_.empty()) return due_.front().*kDue;
    const Place first = find_first();
    if (first.level == kLevels) return Instant::max();
    if (first.level != 0 || first.start != now_) return Instant(typename Instant::duration(first.start << kTickBits));
    Instant least = Instant::max();
    for (const T& object : slots_[0][first.slot]) least = std::min(least, object.*kDue);
    return least;
  }
  /// Takes out the object that was due first, if it was due by `now`; otherwise returns null.
  T* take_due(Instant now) {
    if (due_.empty() || due_.front().*kDue > now) advance(now);
    if (due_.empty()) return nullptr;
    T& first = due_.front();
    due_.pop_front();
    --count_;
    return &first;
  }

 private:
  static constexpr unsigned kTickBits = 13, kDigitBits = 6, kLevels = 9;  // 2^67 ns: all times
  static constexpr std::size_t kSlots = std::size_t{1} << kDigitBits;
  using List = boost::intrusive::list<T, boost::intrusive::member_hook<T, TimerWheelHook, kHook>,
                                      boost::intrusive::constant_time_size<false>>;
  struct Place {
    unsigned level = kLevels;
    std::size_t slot = 0;
    std::int64_t start = 0;  // ticks
  };

  static std::int64_t tick_of(Instant at) { return at.time_since_epoch().count() >> kTickBits; }
  static std::size_t digit(std::int64_t tick, unsigned level) {
    return static_cast<std::uint64_t>(tick) >> (kDigitBits * level) & (kSlots - 1);
  }

  void place(T& object) {
    const std::int64_t tick = std::max(tick_of(object.*kDue), now_);
    const auto differs = static_cast<std::uint64_t>(tick ^ now_);
    const unsigned level = differs == 0 ? 0 : static_cast<unsigned>(63 - std::countl_zero(differs)) / kDigitBits;
    const std::size_t slot = digit(tick, level);
    slots_[level][slot].push_back(object);
    used_[level] |= std::uint64_t{1} << slot;
  }

  /// The slot that time reaches first, or is in. On the way it clears the bits of slots that removals have emptied.
  Place find_first() {
    for (unsigned level = 0; level < kLevels; ++level) {
      while (used_[level] != 0) {
        const auto slot = static_cast<std::size_t>(std::countr_zero(used_[level]));  // slots before now are empty
        if (slots_[level][slot].empty()) {
          used_[level] &= used_[level] - 1;
          continue;
        }
        const unsigned below = kDigitBits * level;
        const std::int64_t above = level + 1 == kLevels ? 0 : now_ >> (below + kDigitBits) << (below + kDigitBits);
        return {level, slot, above | static_cast<std::int64_t>(slot) << below};
      }
    }
    return {};
  }

  void advance(Instant now) {
    const std::int64_t end = tick_of(now);
    List found;
    for (Place first = find_first(); first.level != kLevels && first.start <= end; first = find_first()) {
      now_ = std::max(now_, first.start);
      List some;
      some.splice(some.end(), slots_[first.level][first.slot]);
      used_[first.level] &= ~(std::uint64_t{1} << first.slot);
      while (!some.empty()) {
        T& object = some.front();
        some.pop_front();
        object.*kDue <= now ? found.push_back(object) : place(object);
      }
      if (first.level == 0 && first.start == end) break;  // the objects left in it are due later in this tick
    }
    now_ = std::max(now_, end);
    found.sort([](const T& a, const T& b) { return a.*kDue < b.*kDue; });
    due_.splice(due_.end(), found);
  }

  std::int64_t now_ = 0;  // ticks
  std::size_t count_ = 0;
  std::array<std::uint64_t, kLevels> used_{};  // slots that may have objects
  std::array<std::array<List, kSlots>, kLevels> slots_;
  List due_;  // sorted by due time
};

}  // namespace fairlead::base
