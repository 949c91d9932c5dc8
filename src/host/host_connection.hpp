#pragma once
// An application's connection to the host engine: the memory that the two share, the socket that wakes the one that
// sleeps and tells of the other's end, and waiting for what the host engine writes.
//
// Any thread.

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include <sched.h>

#include "base/processor.hpp"
#include "base/time.hpp"
#include "engine/engine_options.hpp"
#include "host/client_memory.hpp"
#include "queue/wait_ladder.hpp"
#include "shm/socket.hpp"
#include "shm/users.hpp"

namespace fairlead::host {

/// Until the descriptor is readable; -1: only until `deadline`.
void sleep_until_readable(int descriptor, base::Instant deadline);

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

  /// Whether the host engine has ended, as far as is known; look_for_end() asks the kernel.
  bool has_ended() const noexcept { return has_ended_.load(std::memory_order_acquire); }
  void note_end() noexcept { has_ended_.store(true, std::memory_order_release); }
  bool look_for_end();
  /// For those who look again and again: asks the kernel only once in a while.
  void look_for_end_at_times() {
    if (looks_in_vain_.fetch_add(1, std::memory_order_relaxed) % kLooksBetweenCalls == kLooksBetweenCalls - 1)
      look_for_end();
  }

  /// After a request was published. The same protocol as of queue::Waiter: one of the two sees the other.
  void wake() {
    if (memory_->page().host.sleeping.exchange(0, std::memory_order_acq_rel) == 0) return;
    wakes_.fetch_add(1, std::memory_order_relaxed);
    socket_.nudge();
  }
  std::uint64_t wakes() const noexcept { return wakes_.load(std::memory_order_relaxed); }
  /// While it is held nobody else reads the socket.
  std::unique_lock<std::mutex> take_socket() const { return std::unique_lock(sleep_mutex_); }

  /// Looks, as long as the ladder says; true when the wait is over.
  template <typename IsOver>
  bool spin(IsOver&& is_over, queue::WaitLadder::Wait& wait, base::Instant deadline);
  /// Waits for what the host engine writes, of which it tells who sleeps at its reply. False if it has ended first.
  template <typename HasCome>
  bool wait_for(HasCome&& has_come);

 private:
  static constexpr std::uint32_t kLooksBetweenCalls = 4096;  // in vain, before the kernel is asked
  static constexpr base::Duration kNapForReply = std::chrono::seconds(1);

  std::shared_ptr<ClientMemory> memory_;
  shm::Users users_;
  shm::Socket socket_;
  std::atomic<bool> has_ended_{false};
  std::atomic<std::uint64_t> wakes_{0};
  queue::WaitLadder ladder_;
  std::atomic<std::uint32_t> looks_in_vain_{0};
  mutable std::mutex sleep_mutex_;  // one reader at a time of socket_
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
    ::sched_yield();
    ladder_.yielded(wait, now, base::MonotonicClock::now());
  }
}

template <typename HasCome>
bool HostConnection::wait_for(HasCome&& has_come) {
  const auto is_over = [&] { return has_come() || has_ended(); };
  auto wait = ladder_.begin(base::MonotonicClock::now());
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
    ladder_.slept(wait, base::MonotonicClock::now());
  }
  return has_come();
}

}  // namespace fairlead::host
