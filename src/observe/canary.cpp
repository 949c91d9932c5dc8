#include "observe/canary.hpp"

#include "base/affinity.hpp"
#include "base/processor.hpp"
#include "base/thread.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

namespace fairlead::observe {
namespace {

constexpr int kRounds = 15;
constexpr std::uint32_t kExchangesPerRound = 500;
constexpr int kLooksBeforeYield = 1 << 12;  // then yield, since another program may hold the other core

constexpr base::Duration kTimeAtMost = std::chrono::milliseconds{100};
constexpr std::uint32_t kStop = ~std::uint32_t{0};

// The cache line. Even: the asker writes next; odd: the answerer does; kStop: the asker is done.
struct alignas(128) Line {
  std::atomic<std::uint32_t> turn{0};
};

std::uint32_t wait_for_change(const Line& line, std::uint32_t from) {
  for (int looks = 1;; ++looks) {
    const auto turn = line.turn.load(std::memory_order_acquire);
    if (turn != from) return turn;
    if (looks % kLooksBeforeYield == 0) sched_yield();
    base::relax();
  }
}

void answer(Line& line) {
  for (std::uint32_t turn = 0; wait_for_change(line, turn) != kStop; turn += 2) {
    line.turn.store(turn + 2, std::memory_order_release);
  }
}

base::Duration median_exchange(Line& line) {
  std::array<base::Duration, kRounds> rounds{};
  const auto deadline = base::MonotonicClock::now() + kTimeAtMost;
  auto last = rounds.begin();
  std::uint32_t turn = 0;
  for (auto start = base::MonotonicClock::now(); last != rounds.end() && start < deadline;) {
    for (std::uint32_t i = 0; i < kExchangesPerRound; ++i, turn += 2) {
      line.turn.store(turn + 1, std::memory_order_release);
      wait_for_change(line, turn + 1);
    }
    const auto end = base::MonotonicClock::now();
    *last++ = (end - start) / kExchangesPerRound;
    start = end;
  }
  line.turn.store(kStop, std::memory_order_release);
  const auto middle = rounds.begin() + (last - rounds.begin()) / 2;
  std::nth_element(rounds.begin(), middle, last);
  return *middle;
}

}  // namespace

base::Duration line_transfer_time(int cpu_a, int cpu_b) {
  if (cpu_a == cpu_b) return base::Duration::zero();
  Line line;
  std::atomic<int> pinned{0};
  std::atomic<int> arrived{0};
  auto both_pinned = [&](int cpu) {
    pinned += base::pin_to_cpu(cpu) ? 1 : 0;
    for (++arrived; arrived < 2;) sched_yield();
    return pinned == 2;
  };
  auto exchange = base::Duration::zero();
  {
    auto asker = base::Thread::start([&] {
      if (both_pinned(cpu_a)) exchange = median_exchange(line);
    });
    auto answerer = base::Thread::start([&] {
      if (both_pinned(cpu_b)) answer(line);
    });
    for (auto* thread : {&asker, &answerer}) arrived += *thread ? 0 : 1;  // the other one does not wait for it
    for (auto* thread : {&asker, &answerer}) {
      if (*thread) (*thread)->join();
    }
  }
  return exchange / 2;
}

}  // namespace fairlead::observe
