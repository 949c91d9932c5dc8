#pragma once
// Buffers for messages that wait until a port has too few of them: a receive queue that ports share, also those of
// several engines of the process. A port that may take spares posts one whenever a message would find no buffer, so the
// thread that deals with the messages may be late.
//
// Colours. A buffer comes back under the colour of whoever has used it. Who asks for that colour gets the one that came
// back last, warm in its cache; if there is none, or for any colour, the least recently used of all.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include <sys/uio.h>
#include <boost/intrusive/list.hpp>

#include "base/ensure.hpp"
#include "base/short_lock.hpp"
#include "engine/handles.hpp"

namespace fairlead::engine {

/// One buffer. It stays where it is, and its memory too.
struct Spare {
  using Hook = boost::intrusive::list_member_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

  std::span<const iovec> memory;
  std::uint64_t cookie = 0;
  OperationHandle operation;  // as what it was posted last; to be read with one of its completions
  Hook by_use, by_colour;
};

/// Any thread.
class SpareReceives {
 public:
  static constexpr std::uint32_t kAnyColour = ~0U;

  /// Buffers of `size` bytes each; colours 0..colours - 1.
  SpareReceives(std::uint64_t size, std::uint32_t colours) : size_(size), colours_(colours) {}

  std::uint64_t size() const { return size_; }
  /// How many are here now.
  std::uint32_t count() const { return count_.load(std::memory_order_relaxed); }

  /// How many are here with it.
  std::uint32_t put(Spare& spare, std::uint32_t colour) {
    const std::scoped_lock lock(mutex_);
    ENSURE(colour == kAnyColour || colour < colours_.size(), "colour {} of {}", colour, colours_.size());
    all_.push_back(spare);
    if (colour != kAnyColour) colours_[colour].push_front(spare);
    return count_.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  /// Null if there is none.
  Spare* take(std::uint32_t colour) {
    const std::scoped_lock lock(mutex_);
    if (all_.empty()) return nullptr;
    const bool is_warm = colour < colours_.size() && !colours_[colour].empty();
    Spare& taken = is_warm ? colours_[colour].front() : all_.front();
    taken.by_use.unlink();
    taken.by_colour.unlink();
    count_.fetch_sub(1, std::memory_order_relaxed);
    return &taken;
  }
  /// A port has got less than it wants: it looks again when some have come back. Who puts asks, and forgets.
  void want() { is_wanted_.store(true); }
  bool take_wanted() { return is_wanted_.load(std::memory_order_relaxed) && is_wanted_.exchange(false); }

 private:
  template <Spare::Hook Spare::* kHook>
  using List = boost::intrusive::list<Spare, boost::intrusive::member_hook<Spare, Spare::Hook, kHook>,
                                      boost::intrusive::constant_time_size<false>>;

  const std::uint64_t size_;
  mutable base::ShortLock mutex_;
  List<&Spare::by_use> all_;  // the least recently used first
  std::vector<List<&Spare::by_colour>> colours_;
  std::atomic<std::uint32_t> count_{0};
  std::atomic<bool> is_wanted_{false};
};

/// For what a port takes spares, and how they are posted.
struct SparePlan {
  std::shared_ptr<SpareReceives> spares;  // null: it takes none
  std::uint32_t colour = SpareReceives::kAnyColour;
  std::uint32_t length = 0;  // so many are posted ahead, as long as there are some
  std::uint32_t share = 0;   // so many at most by an engine that has to post beforehand what it will want
  std::uint64_t size_min = 1;
  std::uint32_t messages_max = 1;
  bool takes_loans = false;
};

/// How a port stands with its plan.
struct SpareCounts {
  std::uint32_t posted = 0;   // take messages
  std::uint32_t missing = 0;  // of the plan's length, as there were none
  std::uint32_t unended = 0;  // whose final completion has not been produced: posted ones among them
};

}  // namespace fairlead::engine
