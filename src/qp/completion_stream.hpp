#pragma once
// A completion queue: an event queue that any number of work queues feed. Events are produced under the engine's lock
// and consumed without it, by one thread at a time. If the queue is full, an event is lost and the queue is broken from
// then on.
//
// Each event names the incarnation of its queue pair. A queue pair that is reset or destroyed begins another
// incarnation, and the consumer skips events of earlier ones. Receives of XRC belong to the shared receive queue, so
// their events stay valid when the target queue pair ends. A work request occupies its slot until the consumer has
// taken the completion that retires it.

#include <atomic>
#include <cstdint>
#include <span>

#include <fairlead/verbs/work_completion.hpp>

#include "qp/notice_stream.hpp"
#include "qp/receive_source.hpp"
#include "queue/event_queue.hpp"

namespace fairlead::qp {

struct PairEvent {
  verbs::WorkCompletion completion;
  std::uint32_t incarnation = 0;  // of the queue pair (PairAccount)
  std::uint32_t retires = 0;      // number of slots that become free, and the flags below

  // kOfReceives: the slots are those of the receive queue.
  static constexpr std::uint32_t kOfReceives = 1U << 31;
  static constexpr std::uint32_t kIsNotable = 1U << 30;  // solicited, or an error
  static constexpr std::uint32_t kOutlives = 1U << 29;   // valid also after the end of its incarnation
  static constexpr std::uint32_t kSlots = (1U << 24) - 1;

  bool is_of_receives() const { return (retires & kOfReceives) != 0; }
  bool is_notable() const { return (retires & kIsNotable) != 0; }
  bool outlives() const { return (retires & kOutlives) != 0; }
  std::uint32_t slots() const { return retires & kSlots; }
};
static_assert(sizeof(PairEvent) == 64);

/// Counts the slots that completions have freed. The upper half of the word is the incarnation, the lower half the
/// count. Any thread may call it.
class Retired {
 public:
  void begin_incarnation(std::uint32_t incarnation) {
    word_.store(std::uint64_t{incarnation} << 32, std::memory_order_release);
  }
  std::uint32_t count() const { return static_cast<std::uint32_t>(word_.load(std::memory_order_acquire)); }
  /// Counts slots as free. Returns false, without counting, if that incarnation has ended.
  bool add(std::uint32_t incarnation, std::uint32_t slots) {
    std::uint64_t word = word_.load(std::memory_order_relaxed);
    do {
      if (word >> 32 != incarnation) return false;
    } while (!word_.compare_exchange_weak(word, (word & ~0xFFFFFFFFULL) | static_cast<std::uint32_t>(word + slots),
                                          std::memory_order_acq_rel, std::memory_order_relaxed));
    return true;
  }

 private:
  std::atomic<std::uint64_t> word_{0};
};

/// One for each queue pair number; lives as long as the engine.
struct PairAccount {
  Retired sends, receives;
};

class CompletionStream {
 public:
  struct Plan {
    std::uint32_t capacity = 1;
    NoticeStream* channel = nullptr;  // gets a notice of a completion if armed
    NoticeStream* events = nullptr;   // gets a notice of an overrun
    std::uint64_t channel_cookie = 0, events_cookie = 0;
    bool ignores_overrun = false;
  };
  enum class Armed : std::uint8_t { no, solicited, any };

  explicit CompletionStream(const Plan& plan) : plan_(plan), events_(plan.capacity) {
    events_.consumer().look_at_once();
  }

  // The producer's side, under the engine's lock.
  /// Adds an event; make(place) constructs the PairEvent in the queue. `is_notable`: solicited, or an error. Returns
  /// false if there is no room: the event is lost and, unless overruns are ignored, the queue is broken.
  template <typename Make>
  bool produce(Make&& make, bool is_notable) {
    if (is_broken_.load(std::memory_order_relaxed)) [[unlikely]]
      return false;
    const auto make_marked = [&](void* place) {
      make(place);
      if (is_notable) {
        static_cast<PairEvent*>(place)->retires |= PairEvent::kIsNotable;
        last_notable_ = events_.producer().produced() + 1;
      }
    };
    if (!events_.produce_in_place(make_marked)) [[unlikely]] {
      break_off();
      return false;
    }
    if (armed_ != Armed::no) [[unlikely]]
      tell(is_notable);
    return true;
  }
  /// Requests a notice of the next event. It is given at once if there are events of which the consumer knows nothing:
  /// it has not taken them, and no notice was given since they came. InfiniBand permits that, because nobody can tell
  /// whether they came before the call, and devices do it. Programs that do not look again after they have armed, such
  /// as Open MPI's openib, depend on it.
  void arm(Armed armed);
  /// Changes the channel that gets the notices.
  void listen(NoticeStream* channel) { plan_.channel = channel; }
  void tell_overruns_to(NoticeStream* events, std::uint64_t cookie) {
    plan_.events = events;
    plan_.events_cookie = cookie;
  }
  /// Sets the source that has more receives for the queue pairs that feed this stream; null: none.
  void receive_from(ReceiveSource* source) { source_ = source; }
  ReceiveSource* source() const { return source_; }
  const Plan& plan() const { return plan_; }
  std::uint32_t users = 0;  // directions of queue pairs, and XRC receive queues, that feed it

  // The consumer's side, without the lock; one thread at a time.
  /// Takes up to `max` completions and returns their number. Events of ended incarnations are skipped. `accounts`: by
  /// the index part of the queue pair number.
  std::uint32_t take(verbs::WorkCompletion* out, std::uint32_t max, PairAccount* accounts);
  /// The same, with whole events.
  std::uint32_t take_events(std::span<PairEvent> out, PairAccount* accounts);
  bool grow(std::uint32_t capacity) { return events_.reserve(capacity) == Status::ok; }
  std::uint32_t capacity() const { return static_cast<std::uint32_t>(events_.capacity()); }
  std::uint64_t count() { return events_.consumer().count(); }
  /// Returns the total number of events that were taken or skipped.
  std::uint64_t taken() { return events_.consumer().consumed(); }
  bool is_broken() const { return is_broken_.load(std::memory_order_acquire); }
  bool is_empty() const { return events_.is_empty(); }

  /// Returns whether a notice was requested. Under the engine's lock.
  bool is_armed() const { return armed_ != Armed::no; }

 private:
  const PairEvent* next(PairAccount* accounts);
  void break_off();
  void tell(bool is_notable);

  Plan plan_;
  ReceiveSource* source_ = nullptr;
  Armed armed_ = Armed::no;
  std::uint64_t announced_ = 0, last_notable_ = 0;  // number of the last event before the last notice; of a notable one
  std::atomic<bool> is_broken_{false};
  queue::EventQueue<PairEvent> events_;
};

}  // namespace fairlead::qp
