#pragma once
// An application's connection to the host engine: shared memory, the socket that wakes sleepers and reports the other
// side's end, and waiting for the host engine's writes.
//
// Thread-safe.

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include <poll.h>

#include "base/processor.hpp"
#include "base/time.hpp"
#include "engine/engine_options.hpp"
#include "host/client_memory.hpp"
#include "queue/wait_ladder.hpp"
#include "queue/yield.hpp"
#include "shm/socket.hpp"
#include "shm/users.hpp"

namespace fairlead::host {

/// Sleeps until the descriptor is readable or `deadline`; -1: only until `deadline`.
void sleep_until_readable(int descriptor, base::Instant deadline);
/// The same until one of the descriptors is readable.
void sleep_until_readable(std::span<pollfd> descriptors, base::Instant deadline);

class HostConnection {
 public:
  HostConnection(std::shared_ptr<ClientMemory> memory, const engine::EngineOptions& options)
      : memory_(std::move(memory)),
        ladder_(options.wait(), std::chrono::microseconds(options.get(engine::Option::spin))) {}

  const std::shared_ptr<ClientMemory>& shared_memory() const noexcept { return memory_; }
  ClientMemory& memory() const noexcept { return *memory_; }
  shm::Users& users() noexcept { return users_; }
  const shm::Socket& socket() const noexcept { return socket_; }
  void connect(shm::Socket socket) { socket_ = std::move(socket); }
  queue::WaitLadder& ladder() noexcept { return ladder_; }

  /// Returns whether the host engine is known to have ended. look_for_end() asks the kernel.
  bool has_ended() const noexcept { return has_ended_.load(std::memory_order_acquire); }
  void note_end() noexcept { has_ended_.store(true, std::memory_order_release); }
  bool look_for_end();
  /// For pollers: asks the kernel only once per kLooksBetweenCalls calls.
  void look_for_end_at_times() {
    if (looks_in_vain_.fetch_add(1, std::memory_order_relaxed) % kLooksBetweenCalls == kLooksBetweenCalls - 1)
      look_for_end();
  }

  /// Call after a request was published. Follows the protocol of queue::Waiter: at least one side sees the other.
  void wake() {
    if (memory_->page().host.sleeping.exchange(0, std::memory_order_acq_rel) == 0) return;
    wakes_.fetch_add(1, std::memory_order_relaxed);
    socket_.nudge();
  }
  std::uint64_t wakes() const noexcept { return wakes_.load(std::memory_order_relaxed); }
  /// While the lock is held, no other thread reads the socket.
  std::unique_lock<std::mutex> take_socket() const { return std::unique_lock(sleep_mutex_); }

  /// Polls for as long as the ladder permits. Returns true when the wait is over.
  template <typename IsOver>
  bool spin(IsOver&& is_over, queue::WaitLadder::Wait& wait, base::Instant deadline);
  /// Waits for a write of the host engine, which wakes the sleeper of the reply cell. Returns false if the host engine
  /// ended first. After a second, a log line says what the call waits for.
  template <typename HasCome>
  bool wait_for(HasCome&& has_come);
  /// Waits until the host engine has handled the first `requests` requests. Returns false if it ended first.
  bool wait_until_served(std::uint64_t requests);

 private:
  static constexpr std::uint32_t kLooksBetweenCalls = 4096;  // polls in vain between two calls to the kernel
  static constexpr base::Duration kNapForReply = std::chrono::seconds(1);

  static void tell_that_it_waits();

  std::shared_ptr<ClientMemory> memory_;
  shm::Users users_;
  shm::Socket socket_;
  std::atomic<bool> has_ended_{false};
  std::atomic<std::uint64_t> wakes_{0};
  queue::WaitLadder ladder_;
  std::atomic<std::uint32_t> looks_in_vain_{0};
  mutable std::mutex sleep_mutex_;  // admits one reader of socket_ at a time
};

template <typename IsOver>
bool HostConnection::spin(IsOver&& is_over, queue::WaitLadder::Wait& wait, base::Instant deadline) {
  using Step = queue::WaitLadder::Step;
  for (;;) {
    if (is_over()) return true;
    look_for_end_at_times();
    const auto now = base::MonotonicClock::now();
    const Step step = now >= deadline ? Step::sleep : ladder_.next(wait, now);
    if (step == Step::sleep) return is_over();
    if (step == Step::look) {
      base::relax();
      continue;
    }
    ladder_.yielded(wait, now, queue::yield(now));
  }
}

template <typename HasCome>
bool HostConnection::wait_for(HasCome&& has_come) {
  const auto is_over = [&] { return has_come() || has_ended(); };
  const base::Instant begun = base::MonotonicClock::now();
  auto wait = ladder_.begin(begun);
  bool has_told = false;
  while (!spin(is_over, wait, base::kNever)) {
    const std::scoped_lock sleeper(sleep_mutex_);
    queue::SleepFlag& flag = memory_->page().reply.caller;
    flag.sleeping.exchange(1, std::memory_order_acq_rel);
    if (!is_over()) sleep_until_readable(socket_.descriptor(), base::MonotonicClock::now() + kNapForReply);
    flag.sleeping.exchange(0, std::memory_order_acq_rel);
    std::array<std::byte, 8> nudges;
    for (auto letter = socket_.receive(nudges); letter; letter = socket_.receive(nudges)) {
      if (letter->bytes != 0) continue;
      note_end();
      break;
    }
    const base::Instant now = base::MonotonicClock::now();
    ladder_.slept(wait, now);
    if (now - begun < kNapForReply || std::exchange(has_told, true)) continue;
    if (!is_over()) tell_that_it_waits();
  }
  return has_come();
}

}  // namespace fairlead::host
