#pragma once
// A completion queue: an event queue that many work queues feed, produced under the engine's lock and consumed, without
// it, by one thread at a time. A full one loses what comes: it is broken from then on.
//
// An event says which incarnation of its queue pair it belongs to. A queue pair that is reset or destroyed begins
// another incarnation, and what is still in the queue of the one before is thrown away by whoever meets it. Receives of
// XRC are their own queue's, and stay when the queue pair that stood before it ends. An event also
// gives room back: a work request occupies its slot until the owner has seen the completion that retires it.

#include <atomic>
#include <cstdint>
#include <span>

#include <fairlead/verbs/work_completion.hpp>

#include "qp/notice_stream.hpp"
#include "queue/event_queue.hpp"

namespace fairlead::qp {

struct PairEvent {
  verbs::WorkCompletion completion;
  std::uint32_t incarnation = 0;  // of the queue pair's account
  std::uint32_t retires = 0;      // slots that come free with it; kOfReceives: of the receive queue

  static constexpr std::uint32_t kOfReceives = 1U << 31;
  static constexpr std::uint32_t kIsNotable = 1U << 30;  // solicited, or failed
  static constexpr std::uint32_t kOutlives = 1U << 29;   // it is told though its incarnation is over
  static constexpr std::uint32_t kSlots = (1U << 24) - 1;

  bool is_of_receives() const { return (retires & kOfReceives) != 0; }
  bool is_notable() const { return (retires & kIsNotable) != 0; }
  bool outlives() const { return (retires & kOutlives) != 0; }
  std::uint32_t slots() const { return retires & kSlots; }
};
static_assert(sizeof(PairEvent) == 64);

/// Slots that the owner of a queue pair has given back, in the lower half, of the incarnation in the upper half.
class Retired {
 public:
  void begin_incarnation(std::uint32_t incarnation) {
    word_.store(std::uint64_t{incarnation} << 32, std::memory_order_release);
  }
  std::uint32_t count() const { return static_cast<std::uint32_t>(word_.load(std::memory_order_acquire)); }
  /// False if that incarnation is over.
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

/// One per queue pair number, as long as the engine lives.
struct PairAccount {
  Retired sends, receives;
};

class CompletionStream {
 public:
  struct Plan {
    std::uint32_t capacity = 1;
    NoticeStream* channel = nullptr;  // told of completions when armed
    NoticeStream* events = nullptr;   // told of an overrun
    std::uint64_t channel_cookie = 0, events_cookie = 0;
    bool ignores_overrun = false;
  };
  enum class Armed : std::uint8_t { no, solicited, any };

  explicit CompletionStream(const Plan& plan) : plan_(plan), events_(plan.capacity) {
    events_.consumer().look_at_once();
  }

  // Under the engine's lock.
  /// make(place) constructs a PairEvent where it is read. `is_notable`: solicited, or failed. False if there was no
  /// room: lost, and (unless overruns are ignored) the queue is broken.
  template <typename Make>
  bool produce(Make&& make, bool is_notable) {
    if (is_broken_.load(std::memory_order_relaxed)) [[unlikely]]
      return false;
    const auto make_marked = [&](void* place) {
      make(place);
      if (is_notable) static_cast<PairEvent*>(place)->retires |= PairEvent::kIsNotable;
    };
    if (!events_.produce_in_place(make_marked)) [[unlikely]] {
      break_off();
      return false;
    }
    if (armed_ != Armed::no) [[unlikely]]
      tell(is_notable);
    return true;
  }
  void arm(Armed armed) {
    if (armed > armed_) armed_ = armed;
  }
  /// Who is told from now on.
  void listen(NoticeStream* channel) { plan_.channel = channel; }
  const Plan& plan() const { return plan_; }
  std::uint32_t users = 0;  // queue pairs that feed it, once for each direction

  // The consumer.
  /// Takes up to `max`; events of incarnations that are over are skipped. `accounts` by the index in the
  /// number.
  std::uint32_t take(verbs::WorkCompletion* out, std::uint32_t max, PairAccount* accounts);
  /// The same with all that is known of each.
  std::uint32_t take_events(std::span<PairEvent> out, PairAccount* accounts);
  bool grow(std::uint32_t capacity) { return events_.reserve(capacity) == Status::ok; }
  std::uint32_t capacity() const { return static_cast<std::uint32_t>(events_.capacity()); }
  std::uint64_t count() { return events_.consumer().count(); }
  bool is_broken() const { return is_broken_.load(std::memory_order_acquire); }
  bool is_empty() const { return events_.is_empty(); }

  /// Under the engine's lock: whether somebody wants to be told.
  bool is_armed() const { return armed_ != Armed::no; }

 private:
  const PairEvent* next(PairAccount* accounts);
  void break_off();
  void tell(bool is_notable);

  Plan plan_;
  Armed armed_ = Armed::no;
  std::atomic<bool> is_broken_{false};
  queue::EventQueue<PairEvent> events_;
};

}  // namespace fairlead::qp
