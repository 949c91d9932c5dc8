#pragma once
// What makes an engine of this process go: one Engine behind one lock, with a clock, a thread of its own and waiting.
//
// Who drives. Whoever waits: a poller through look(), a waiter inside wait(). The engine's own thread sleeps on the
// path's descriptor. When a datagram wakes it and somebody else has made a pass within the last tick, it leaves the
// work to them and only looks again after a tick; when nobody has, it works itself. So beside a poller it costs one
// wake-up a tick, beside nobody one a datagram, and in an idle process none.
//
// The lock is tried, not waited for, where a pass would only be repeated (look). Those who must have it (submit,
// cancel) announce themselves, and pollers let them pass: a spinning poller would else starve them.

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <poll.h>

#include "base/clock_pace.hpp"
#include "base/ensure.hpp"
#include "base/file_descriptor.hpp"
#include "base/log.hpp"
#include "base/log_file.hpp"
#include "base/process_mark.hpp"
#include "base/short_lock.hpp"
#include "base/thread.hpp"
#include "embedded/keyring_watch.hpp"
#include "engine/engine.hpp"
#include "observe/stats_page.hpp"
#include "queue/idle_polls.hpp"

namespace fairlead::embedded {

class Driver {
 public:
  /// Readers of other processes are answered so often at most, however many look: each answer holds the lock.
  static constexpr base::Duration kAnswerEvery = std::chrono::milliseconds(10);
  static constexpr std::size_t kWaitPortsMax = engine::ActivePorts::kWaitPortsMax;

  /// `keys`: the files of what the engine seals with, if it does.
  Driver(std::unique_ptr<engine::Engine> engine, base::FileDescriptor kick, base::LogFile log,
         const std::optional<seal::KeyringFiles>& keys);
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;
  /// Its thread, if there is a path. Once.
  Result<> start();
  /// The thread ends, and all peers are told. In the child of a fork nothing: there it is the parent's. Once, before
  /// anything goes that the engine still refers to.
  void stop();

  engine::Engine& engine() const noexcept { return *engine_; }
  engine::Port& port(engine::PortHandle handle) const {
    engine::Port* port = engine_->ports().find(handle);
    ENSURE(port != nullptr, "port slot {} used after it was closed", handle.slot);
    return *port;
  }
  const base::ProcessMark& mark() const noexcept { return mark_; }

  /// Holds the engine's lock; pollers that see the wish step back.
  class Locked {
   public:
    explicit Locked(const Driver& driver) : driver_(driver) {
      if (driver_.mutex_.try_lock()) return;
      driver_.wanted_.fetch_add(1, std::memory_order_relaxed);
      driver_.mutex_.lock();
      driver_.wanted_.fetch_sub(1, std::memory_order_relaxed);
    }
    ~Locked() { driver_.mutex_.unlock(); }
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;

   private:
    const Driver& driver_;
  };

  /// Holds the locks of all engines of this process: no engine touches any memory meanwhile.
  class AllLocked {
   public:
    AllLocked();
    ~AllLocked();
    AllLocked(const AllLocked&) = delete;
    AllLocked& operator=(const AllLocked&) = delete;
    /// Whether the caller is the only thread of the process besides those of engines.
    bool is_alone() const;
  };

  /// call() under the lock; the engine's thread learns of an earlier deadline.
  template <typename Submit>
  Status submit_locked(Submit&& call);
  /// call(now).
  template <typename Submit>
  Status submit(Submit&& call);
  /// `is_local`: whether what is submitted goes to a peer of this host.
  template <typename IsLocal, typename Submit>
  Status submit_local(IsLocal&& is_local, Submit&& call);
  bool is_local(const engine::RemotePort& to) const { return engine_->find_local(to.engine) != nullptr; }
  /// Under the lock. `known`: the clock has just been asked.
  base::Instant time_of_call(base::Instant known = {});
  base::Instant time_of_local_call();

  /// A pass, if nobody else is at it. True if anything happened.
  bool pass(base::Instant now);
  /// The same for those who poll again and again.
  bool look();
  /// After a look in vain. Many of them, one right after the other, give the processor to others that want it. The
  /// caller holds no lock.
  void give_way() {
    if (is_way_due_.load(std::memory_order_relaxed)) [[unlikely]]
      yield_or_sleep();
  }
  template <typename Progress>
  bool look_by(Progress&& progress);
  /// Until one of the ports has news or is interrupted, or `deadline`. True if one has news.
  bool wait(std::span<engine::Port* const> ports, base::Instant deadline);
  /// What is still on its way to peers has a moment to arrive.
  void linger();
  void take_leave();

 private:
  static constexpr std::int64_t kSomebodyDrives = base::Instant::min().time_since_epoch().count();
  static constexpr base::Duration kTickMin = std::chrono::milliseconds(1);
  static constexpr base::Duration kTickMax = std::chrono::milliseconds(4), kTickCalm = std::chrono::milliseconds(8);

  base::Instant deadline_to_tell() const;
  bool pass(std::unique_lock<base::ShortLock>& lock, base::Instant now);
  bool end_pass(std::unique_lock<base::ShortLock>& lock, bool any);
  void say_goodbye();
  void write_report(const std::vector<base::LogNote>& report);
  pollfd bell(base::Instant now, base::Instant& deadline) const;
  void answer_bell();
  void tell_news(std::unique_lock<base::ShortLock>& lock);
  void look_at_keys(std::vector<base::LogNote>& report);
  bool spin(std::span<engine::Port* const> ports, queue::WaitLadder::Wait& wait, base::Instant deadline);
  void sleep(std::span<engine::Port* const> ports, base::Instant deadline);
  void yield_or_sleep();
  void run();
  bool rest_if_polled(std::uint64_t& sleeps_seen);
  void kick_if_later_than(base::Instant deadline);
  void rise();

  std::unique_ptr<engine::Engine> engine_;
  mutable base::ShortLock mutex_;
  mutable std::atomic<std::uint32_t> wanted_{0};   // threads that must have the lock
  std::atomic<std::uint64_t> passes_{0};           // made by anybody; the engine's thread compares
  std::atomic<std::int64_t> thread_sleeps_until_;  // when the engine's thread will look at the timers by itself
  std::atomic<std::uint64_t> sleeps_{0};           // of waiters on the path's descriptor
  std::atomic<bool> has_sleeping_driver_{false};   // one waiter sleeps on the path's descriptor, too
  std::atomic<bool> is_thread_asleep_{false};      // until something happens, not for a tick
  std::atomic<bool> is_stopping_{false};
  base::ClockPace pace_;                  // under the lock
  std::atomic<bool> was_in_vain_{false};  // the last look of a poller
  queue::WaitLadder ladder_;              // of all who wait
  queue::IdlePolls idle_polls_;           // looks in vain; under the lock
  std::atomic<bool> is_way_due_{false};   // there have been many
  base::FileDescriptor kick_;             // wakes the engine's thread: an earlier deadline, or the end
  base::LogFile log_;
  std::optional<KeyringWatch> keyring_watch_;  // if sessions are sealed
  std::optional<observe::StatsPage> stats_;    // for other processes; under the lock
  base::Instant answer_at_{};                  // not before; its thread's
  base::Thread thread_;
  const base::ProcessMark mark_;
};

inline base::Instant Driver::time_of_call(base::Instant known) {
  engine_->set_now(known == base::Instant{} ? base::MonotonicClock::now() : known);
  return engine_->now();
}

// For what goes to peers of this host, which no timer needs to know exactly.
inline base::Instant Driver::time_of_local_call() {
  return pace_.may_skip() ? engine_->now() : time_of_call();
}

// When the engine's thread has to wake at the latest. While somebody drives it wants to know of no deadline.
inline base::Instant Driver::deadline_to_tell() const {
  const bool is_told = thread_sleeps_until_.load(std::memory_order_relaxed) == kSomebodyDrives;
  return is_told ? base::kNever : engine_->next_deadline();
}

template <typename Submit>
Status Driver::submit_locked(Submit&& call) {
  Status status = Status::ok;
  base::Instant deadline = base::kNever;
  {
    Locked lock(*this);
    status = call();
    engine_->ports().notify_touched();
    deadline = deadline_to_tell();
  }
  kick_if_later_than(deadline);
  return status;
}

template <typename Submit>
Status Driver::submit(Submit&& call) {
  return submit_locked([&] { return call(time_of_call()); });
}

template <typename IsLocal, typename Submit>
Status Driver::submit_local(IsLocal&& is_local, Submit&& call) {
  return submit_locked([&] { return call(is_local() ? time_of_local_call() : time_of_call()); });
}

// As pass(), for those who poll again and again: most look only at what peers of this host have written.
// progress(now) makes the pass itself.
template <typename Progress>
bool Driver::look_by(Progress&& progress) {
  if (wanted_.load(std::memory_order_relaxed) != 0) return false;
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return false;
  const bool is_time_good = engine_->is_network_idle() && pace_.may_skip();
  if (is_time_good && was_in_vain_.load(std::memory_order_relaxed)) engine_->connections()->watch().glance();
  const bool any = progress(is_time_good ? engine_->now() : pace_.asked(base::MonotonicClock::now()));
  was_in_vain_.store(!any, std::memory_order_relaxed);
  if (any) {
    idle_polls_.found();
  } else if (idle_polls_.is_turn()) [[unlikely]] {
    is_way_due_.store(true, std::memory_order_relaxed);
  }
  return end_pass(lock, any);
}

}  // namespace fairlead::embedded
