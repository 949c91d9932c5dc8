#pragma once
// Drives an engine of this process: one Engine behind one lock, with a clock, a thread and waiting.
//
// Who drives. A thread that waits makes the passes: a poller in look(), a waiter in wait(). The engine's own thread
// sleeps on the path's descriptor. A datagram may wake it although another thread has made a pass within the last tick.
// Then it leaves the work to that thread and checks again after a tick. Otherwise it makes the pass itself. So it costs
// one wake-up for each tick beside a poller, one for each datagram otherwise, and none in an idle process.
//
// The lock. look() only tries it, because a pass is repeated anyway. Threads that need the lock (submit, cancel)
// announce themselves, and pollers let them go first: a spinning poller would otherwise starve them.

#include <array>
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
#include "base/sleep_timer.hpp"
#include "base/thread.hpp"
#include "embedded/goodbye.hpp"
#include "embedded/keyring_watch.hpp"
#include "engine/engine.hpp"
#include "observe/stats_page.hpp"
#include "queue/idle_polls.hpp"

namespace fairlead::embedded {

class Driver {
 public:
  /// Minimum time between answers to readers in other processes, however many there are: each answer holds the lock.
  static constexpr base::Duration kAnswerEvery = std::chrono::milliseconds(10);
  static constexpr std::size_t kWaitPortsMax = engine::ActivePorts::kWaitPortsMax;

  /// `keys`: the key files, if sessions are sealed.
  Driver(std::unique_ptr<engine::Engine> engine, base::FileDescriptor kick, base::LogFile log,
         const std::optional<seal::KeyringFiles>& keys);
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;
  /// Starts the engine's thread and its statistics page, if there is a path. Called once. Fails if there can be no
  /// thread.
  Result<> start();
  /// Ends the thread and tells all peers that the engine ends. In the child of a fork() it only keeps the parent's
  /// engine from being destroyed. Called once, before anything ends that the engine refers to.
  void stop();

  engine::Engine& engine() const noexcept { return *engine_; }
  engine::Port& port(engine::PortHandle handle) const {
    engine::Port* port = engine_->ports().find(handle);
    ENSURE(port != nullptr, "port slot {} used after it was closed", handle.slot);
    return *port;
  }
  const base::ProcessMark& mark() const noexcept { return mark_; }

  /// Holds the engine's lock. Pollers stay away from the lock while a thread waits for it.
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

  /// Holds the locks of all engines of this process, so that none of them accesses memory.
  class AllLocked {
   public:
    AllLocked();
    ~AllLocked();
    AllLocked(const AllLocked&) = delete;
    AllLocked& operator=(const AllLocked&) = delete;
    /// Returns whether the process has no threads other than the caller, the engines' and those of base::SlowCloser.
    bool is_alone() const;
  };

  /// Runs call() under the lock and returns its status. Wakes the engine's thread if the next deadline became earlier.
  template <typename Submit>
  Status submit_locked(Submit&& call);
  /// The same with call(now).
  template <typename Submit>
  Status submit(Submit&& call);
  /// The same. is_local() tells, under the lock, whether the submission is for a local peer: `now` may then be some
  /// microseconds old.
  template <typename IsLocal, typename Submit>
  Status submit_local(IsLocal&& is_local, Submit&& call);
  bool is_local(const engine::RemotePort& to) const { return engine_->find_local(to.engine) != nullptr; }
  /// Reads the clock and sets the engine's time. Under the lock. `known`: a time that was just read.
  base::Instant time_of_call(base::Instant known = {});
  base::Instant time_of_local_call();

  /// Makes a pass, unless another thread has the lock or waits for it. Returns true if anything happened.
  bool pass(base::Instant now);
  /// The same for pollers.
  bool look();
  /// Called after a look() that found nothing. After many of those in a row it yields the processor or sleeps, if
  /// others want it. The caller holds no lock.
  void give_way() {
    if (is_way_due_.load(std::memory_order_relaxed)) [[unlikely]]
      yield_or_sleep();
  }
  template <typename Progress>
  bool look_by(Progress&& progress);
  /// Before a sleep on descriptors(): a datagram, or a message of a local peer, then makes one of them readable, and
  /// the caller makes the pass. Lowers `deadline` to the time of the next pass that is due without them. Returns false
  /// if there is no path, or another waiter sleeps on them.
  bool lie_down(base::Instant& deadline);
  /// After that sleep.
  void get_up();
  std::array<int, 2> descriptors() const { return {engine_->path()->descriptor(), shm_descriptor(*engine_)}; }
  /// Waits until a port has news or is interrupted, or until `deadline`. Returns true if a port has news.
  bool wait(std::span<engine::Port* const> ports, base::Instant deadline);
  /// Makes passes until peers are owed nothing, for 100 ms at most. Cancelled messages are owed to nobody.
  void linger();
  /// Lingers, tells all peers that the engine ends, and ends all sessions. It waits for answers as a rank of a job
  /// does, stop() only briefly.
  void take_leave();

 private:
  static constexpr std::int64_t kSomebodyDrives = base::Instant::min().time_since_epoch().count();
  static constexpr base::Duration kTickMin = std::chrono::milliseconds(1);
  static constexpr base::Duration kTickMax = std::chrono::milliseconds(4), kTickCalm = std::chrono::milliseconds(8);

  base::Instant deadline_to_tell() const;
  bool pass(std::unique_lock<base::ShortLock>& lock, base::Instant now);
  bool end_pass(std::unique_lock<base::ShortLock>& lock, bool any);
  void part(Goodbye goodbye);
  void say_goodbye(Goodbye goodbye);
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

  std::unique_ptr<engine::Engine> engine_;
  mutable base::ShortLock mutex_;
  mutable std::atomic<std::uint32_t> wanted_{0};   // threads that wait for the lock
  std::atomic<std::uint64_t> passes_{0};           // made by any thread; the engine's thread compares
  std::atomic<std::int64_t> thread_sleeps_until_;  // when the engine's thread will wake and check the timers
  std::atomic<std::uint64_t> sleeps_{0};           // times that a waiter slept on the path's descriptor
  std::atomic<bool> has_sleeping_driver_{false};   // a waiter sleeps on the path's descriptor
  base::SleepTimer timer_;                         // of that waiter
  std::atomic<bool> is_thread_asleep_{false};      // on the path's descriptor, not for a tick
  std::atomic<bool> is_stopping_{false};
  base::ClockPace pace_;                  // under the lock
  std::atomic<bool> was_in_vain_{false};  // the last look() found nothing
  queue::WaitLadder ladder_;              // shared by all waiters
  queue::IdlePolls idle_polls_;           // counts look() calls that found nothing; under the lock
  std::atomic<bool> is_way_due_{false};   // give_way() has to act
  base::FileDescriptor kick_;             // wakes the engine's thread: an earlier deadline, or the end
  base::LogFile log_;
  std::optional<KeyringWatch> keyring_watch_;  // if sessions are sealed
  std::optional<observe::StatsPage> stats_;    // for other processes; under the lock
  base::Instant answer_at_{};                  // no answer to readers before; for its thread only
  base::Thread thread_;
  const base::ProcessMark mark_;
};

inline base::Instant Driver::time_of_call(base::Instant known) {
  engine_->set_now(known == base::Instant{} ? base::MonotonicClock::now() : known);
  return engine_->now();
}

// For submissions to local peers: no timer depends on their exact time.
inline base::Instant Driver::time_of_local_call() {
  return pace_.may_skip() ? engine_->now() : time_of_call();
}

// Returns the time by which the engine's thread has to wake; kNever while another thread drives, because then it
// ignores deadlines.
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

// As pass(), for pollers. While only local peers have messages, most passes reuse the last time read. progress(now)
// makes the pass itself.
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
  } else if (idle_polls_.is_turn([this] { return engine_->now(); })) [[unlikely]] {
    is_way_due_.store(true, std::memory_order_relaxed);
  }
  return end_pass(lock, any);
}

}  // namespace fairlead::embedded
