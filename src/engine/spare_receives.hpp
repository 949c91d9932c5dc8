#pragma once
// A shared receive queue: buffers that wait until a port has too few. Several ports share it, also those of different
// engines in the process. A port with spares posts one whenever a message would find no buffer, so the application's
// thread may be late.
//
// Colours: a buffer comes back under the colour of its last user. A request for that colour gets the buffer that came
// back last, which is still in that user's cache. If there is none, or for any colour, it gets the least recently used
// buffer of all.

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

/// One buffer. Neither it nor its memory moves.
struct Spare {
  using Hook = boost::intrusive::list_member_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

  std::span<const iovec> memory;
  std::uint64_t cookie = 0;
  OperationHandle operation;  // of its last posting; read it together with one of its completions
  Hook by_use, by_colour;
};

/// Thread-safe.
class SpareReceives {
 public:
  static constexpr std::uint32_t kAnyColour = ~0U;

  /// `size` is the bytes of each buffer; colours are 0..colours - 1.
  SpareReceives(std::uint64_t size, std::uint32_t colours) : size_(size), colours_(colours) {}

  std::uint64_t size() const { return size_; }
  /// Returns how many spares are here now.
  std::uint32_t count() const { return count_.load(std::memory_order_relaxed); }

  /// Adds a spare. Returns how many are here, including it.
  std::uint32_t put(Spare& spare, std::uint32_t colour) {
    const std::scoped_lock lock(mutex_);
    ENSURE(colour == kAnyColour || colour < colours_.size(), "colour {} of {}", colour, colours_.size());
    all_.push_back(spare);
    if (colour != kAnyColour) colours_[colour].push_front(spare);
    return count_.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  /// Returns null if there is none.
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
  /// Records that a port got fewer spares than it wants and must try again when some are returned. take_wanted(),
  /// called after put(), reads and clears this.
  void want() { is_wanted_.store(true); }
  bool take_wanted() { return is_wanted_.load(std::memory_order_relaxed) && is_wanted_.exchange(false); }

 private:
  template <Spare::Hook Spare::* kHook>
  using List = boost::intrusive::list<Spare, boost::intrusive::member_hook<Spare, Spare::Hook, kHook>,
                                      boost::intrusive::constant_time_size<false>>;

  const std::uint64_t size_;
  mutable base::ShortLock mutex_;
  List<&Spare::by_use> all_;  // least recently used first
  std::vector<List<&Spare::by_colour>> colours_;
  std::atomic<std::uint32_t> count_{0};
  std::atomic<bool> is_wanted_{false};
};

/// How a port posts spares.
struct SparePlan {
  std::shared_ptr<SpareReceives> spares;  // null: it takes none
  std::uint32_t colour = SpareReceives::kAnyColour;
  std::uint32_t length = 0;  // how many are posted ahead, while there are spares
  std::uint32_t share = 0;   // the most that an engine may post ahead if it cannot take more on demand
  std::uint64_t size_min = 1;
  std::uint32_t messages_max = 1;
  bool takes_loans = false;
};

/// A port's progress with its plan.
struct SpareCounts {
  std::uint32_t posted = 0;   // that take messages
  std::uint32_t missing = 0;  // of the plan's length, for lack of spares
  std::uint32_t unended = 0;  // without a final completion yet, including posted ones
};

}  // namespace fairlead::engine
