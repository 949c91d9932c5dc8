#include "embedded/driver.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <thread>
#include <utility>

#include "base/poll_until.hpp"
#include "base/process_memory.hpp"
#include "base/roll.hpp"
#include "base/say.hpp"
#include "base/short_slice.hpp"
#include "base/slow_closer.hpp"

namespace fairlead::embedded {
namespace {

constinit base::OfProcess<base::Roll<Driver>> everyone;

}  // namespace

Driver::Driver(std::unique_ptr<engine::Engine> engine, base::FileDescriptor kick, base::LogFile log,
               const std::optional<seal::KeyringFiles>& keys)
    : engine_(std::move(engine)),
      thread_sleeps_until_(kSomebodyDrives),
      ladder_(engine_->options().wait(), std::chrono::microseconds(engine_->options().get(engine::Option::spin))),
      idle_polls_(engine_->options().wait()),
      kick_(std::move(kick)),
      log_(std::move(log)),
      keyring_watch_(keys ? std::optional<KeyringWatch>(*keys) : std::nullopt) {
  everyone->enter(*this);
}

Result<> Driver::start() {
  if (engine_->path() == nullptr) return {};
  if (auto page = observe::StatsPage::create(engine_->address(), base::MonotonicClock::now()); page)
    stats_.emplace(std::move(*page));
  else
    write_report({{LogLevel::info, LogTopic::engine, page.error().message + "\n"}});
  auto thread = base::Thread::start([this] { run(); });
  if (!thread) return std::unexpected(std::move(thread.error()));
  thread_ = std::move(*thread);
  return {};
}

Driver::AllLocked::AllLocked() {
  everyone->lock();
  for (const Driver* driver : everyone->locked_all()) {
    driver->wanted_.fetch_add(1, std::memory_order_relaxed);
    driver->mutex_.lock();
    driver->wanted_.fetch_sub(1, std::memory_order_relaxed);
  }
}

Driver::AllLocked::~AllLocked() {
  for (const Driver* driver : everyone->locked_all()) driver->mutex_.unlock();
  everyone->unlock();
}

bool Driver::AllLocked::is_alone() const {
  const auto threads = static_cast<unsigned>(
      std::ranges::count_if(everyone->locked_all(), [](const Driver* one) { return one->thread_.is_joinable(); }));
  return base::thread_count() == threads + base::SlowCloser::threads() + 1;
}

void Driver::stop() {
  // In the child of a fork() the engine is still the parent's: its lock may be held, and its names and peers belong to
  // the parent.
  if (mark_.is_inherited()) {
    base::keep_for_ever(std::shared_ptr<engine::Engine>(std::move(engine_)));
    return;
  }
  if (thread_.is_joinable()) {
    is_stopping_.store(true, std::memory_order_release);
    ::eventfd_write(kick_.get(), 1);
    thread_.join();
  }
  everyone->leave(*this);
  part(Goodbye::brief());
  if (engine_->path() != nullptr && base::is_logged(LogLevel::info, LogTopic::engine))
    base::log(LogLevel::info, LogTopic::engine, engine_->address().to_string(), "the engine has ended");
}

// Passes -------------------------------------------------------------------------------------------------------------

bool Driver::pass(base::Instant now) {
  if (wanted_.load(std::memory_order_relaxed) != 0) return false;
  std::unique_lock lock(mutex_, std::try_to_lock);
  return lock && pass(lock, pace_.asked(now));
}

bool Driver::pass(std::unique_lock<base::ShortLock>& lock, base::Instant now) {
  return end_pass(lock, engine_->progress(now));
}

bool Driver::end_pass(std::unique_lock<base::ShortLock>& lock, bool any) {
  engine_->ports().notify_touched();
  passes_.store(passes_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (engine_->has_report() || (keyring_watch_ && keyring_watch_->is_due(engine_->now()))) [[unlikely]]
    tell_news(lock);
  return any;
}

bool Driver::look() {
  return look_by([&](base::Instant now) { return engine_->progress(now); });
}

// Wakes the engine's thread if it sleeps beyond `deadline`. It then checks the timers.
void Driver::kick_if_later_than(base::Instant deadline) {
  const std::int64_t wanted = deadline.time_since_epoch().count();
  if (thread_sleeps_until_.load(std::memory_order_relaxed) <= wanted) [[likely]]
    return;
  // Only once: until the thread has woken, other threads need not do it.
  thread_sleeps_until_.store(wanted, std::memory_order_relaxed);
  ::eventfd_write(kick_.get(), 1);
}

// Some programs poll for a while and then spin on memory that the peer writes. If the thread left the work to them for
// a whole tick, everything would wait that long. So if it finds work that no other thread has done, it becomes
// attentive: its ticks are short until it has found none for a while. It does not watch the path meanwhile: each
// datagram would wake it and take the processor from a poller.
void Driver::run() {
  constexpr base::Duration kAttentiveMin = std::chrono::milliseconds(2), kAttentiveMax = std::chrono::milliseconds(64);
  constexpr auto kAttentiveTick = std::chrono::microseconds(100);
  constexpr auto kCalm = std::chrono::seconds(1);         // not attentive for so long: longer ticks
  constexpr auto kSoon = std::chrono::milliseconds(100);  // attentive again within this time: for longer
  base::ask_for_short_slice();
  std::uint64_t passes_seen = 0, sleeps_seen = 0, drivers_seen = 0;
  base::Duration tick = kTickMin;
  base::Instant attentive_until = base::MonotonicClock::now();
  base::Duration attentive = kAttentiveMin;
  while (!is_stopping_.load(std::memory_order_acquire)) {
    const std::uint64_t passes = passes_.load(std::memory_order_relaxed);
    const auto now = base::MonotonicClock::now();
    if (passes != passes_seen) {
      // Another thread drives: check after a tick whether it still does. Until then no thread has to wake this one for
      // an earlier deadline. If the driver leaves, a timer is late by a tick at most. Each check takes the processor
      // from another thread for some 10 us, so a steady poller is checked less often.
      passes_seen = passes;
      thread_sleeps_until_.store(kSomebodyDrives, std::memory_order_relaxed);
      const bool is_attentive = now < attentive_until;
      base::Instant look_at = now + (is_attentive ? kAttentiveTick : tick);
      std::array<pollfd, 2> kicked{{{kick_.get(), POLLIN, 0}, bell(now, look_at)}};
      base::poll_until(kicked, look_at);
      if (kicked.back().revents != 0) answer_bell();
      const bool is_polled = tick >= kTickMax && rest_if_polled(sleeps_seen);
      if (!is_attentive) tick = std::min(2 * tick, is_polled && now - attentive_until >= kCalm ? kTickCalm : kTickMax);
    } else {
      tick = kTickMin;
      const std::uint64_t sleeps = sleeps_.load(std::memory_order_relaxed);
      const bool has_driver = sleeps != std::exchange(drivers_seen, sleeps);
      if (pass(now) && !has_driver && !has_sleeping_driver_.load(std::memory_order_relaxed)) {
        if (now - attentive_until >= kSoon) attentive = kAttentiveMin;
        if (now >= attentive_until) attentive = std::min(2 * attentive, kAttentiveMax);
        attentive_until = now + attentive;
      }
      passes_seen = passes_.load(std::memory_order_relaxed);
      base::Instant deadline;
      {
        std::unique_lock lock(mutex_);
        pace_.stop();
        if (!engine_->arm()) continue;
        deadline = engine_->next_deadline();
        if (!engine_->path()->set_watched(true)) deadline = std::min(deadline, now + kTickMin);
        thread_sleeps_until_.store(deadline.time_since_epoch().count(), std::memory_order_relaxed);
        is_thread_asleep_.store(true, std::memory_order_relaxed);
      }
      std::array<pollfd, 4> woken{{{kick_.get(), POLLIN, 0},
                                   {engine_->path()->descriptor(), POLLIN, 0},
                                   {shm_descriptor(*engine_), POLLIN, 0},
                                   bell(now, deadline)}};
      base::poll_until(woken, deadline);
      {
        std::unique_lock lock(mutex_);
        is_thread_asleep_.store(false, std::memory_order_relaxed);
        engine_->disarm();
      }
      if (woken.back().revents != 0) answer_bell();
    }
    eventfd_t ignored = 0;
    ::eventfd_read(kick_.get(), &ignored);
  }
}

// Another thread drives. If no waiter has slept since the last check, that thread polls: returns true, and the path
// need not wake it. The lock is only tried, because the poller would have to wake a thread that waits for it. What is
// left undone can wait for the next tick.
bool Driver::rest_if_polled(std::uint64_t& sleeps_seen) {
  const std::uint64_t sleeps = sleeps_.load(std::memory_order_relaxed);
  if (sleeps != std::exchange(sleeps_seen, sleeps)) return false;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (has_sleeping_driver_.load(std::memory_order_acquire)) return false;
  if (lock && sleeps == sleeps_.load(std::memory_order_relaxed)) engine_->path()->set_watched(false);
  return true;
}

void Driver::take_leave() {
  part(Goodbye::patient());
}

void Driver::part(Goodbye goodbye) {
  linger();
  say_goodbye(goodbye);
  const Locked lock(*this);
  engine_->farewell(base::MonotonicClock::now());
}

void Driver::linger() {
  constexpr auto kLingerMost = std::chrono::milliseconds(100);
  auto now = base::MonotonicClock::now();
  const auto is_owing = [&] {
    const Locked lock(*this);
    return engine_->is_owing();
  };
  for (const auto end = now + kLingerMost; is_owing() && now < end; now = base::MonotonicClock::now()) {
    if (!pass(now)) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

/// Tells all peers that the engine ends, until all have answered or enough has been said. A farewell may be lost, so
/// the driver repeats it. A peer that does not run finds it in its socket.
void Driver::say_goodbye(Goodbye goodbye) {
  while (goodbye.has_round()) {
    auto now = base::MonotonicClock::now();
    {
      const Locked lock(*this);
      if (engine_->take_leave(now) == 0) return;
    }
    for (const auto again = now + goodbye.next_pause(); now < again; now = base::MonotonicClock::now()) {
      if (!pass(now)) std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
}

// Reports ------------------------------------------------------------------------------------------------------------

// Writes the log without the lock: it may call a function of the program, which may wait for locks of the program.
void Driver::tell_news(std::unique_lock<base::ShortLock>& lock) {
  std::vector<base::LogNote> report;
  if (engine_->has_report()) report = engine_->take_report();
  if (keyring_watch_ && keyring_watch_->is_due(engine_->now())) look_at_keys(report);
  if (report.empty()) return;
  if (stats_) base::say([&] { stats_->publish_report(text_of(report), engine_->now()); });
  lock.unlock();
  write_report(report);
}

void Driver::look_at_keys(std::vector<base::LogNote>& report) {
  std::string complaint;
  if (auto ring = keyring_watch_->next(engine_->now(), complaint)) engine_->set_keyring(std::move(ring));
  if (complaint.empty()) return;
  base::say([&] { report.push_back({LogLevel::warning, LogTopic::seal, complaint + "\n"}); });
}

// Returns the descriptor on which readers ring; none before answer_at_. Until then their requests wait in it.
pollfd Driver::bell(base::Instant now, base::Instant& deadline) const {
  if (!stats_) return {-1, POLLIN, 0};
  if (now >= answer_at_) return {stats_->bell(), POLLIN, 0};
  deadline = std::min(deadline, answer_at_);
  return {-1, POLLIN, 0};
}

// Answers another process that wants to see the engine (`fairlead top`).
void Driver::answer_bell() {
  using Wish = observe::StatsPage::Wish;
  const Locked lock(*this);
  const Wish wish = stats_->take_wish();
  if (wish == Wish::nothing) return;
  engine_->set_now(base::MonotonicClock::now());
  base::say([&] { stats_->publish(engine_->stats(wish == Wish::flights), wish, engine_->now()); });
  answer_at_ = base::MonotonicClock::now() + kAnswerEvery;
}

void Driver::write_report(const std::vector<base::LogNote>& report) {
  base::say([&] {
    const std::string address = engine_->address().to_string();
    log_.write(fmt::format("fairlead at {}: {}", address, text_of(report)));
    for (const base::LogNote& note : report) base::log(note.level, note.topic, address, note.text);
  });
}

}  // namespace fairlead::embedded
