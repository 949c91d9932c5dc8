#include "base/time.hpp"

#include <ctime>

#if defined(__x86_64__)
#include <fcntl.h>
#include <unistd.h>
#include <x86intrin.h>

#include <cstdint>
#include <string_view>
#endif

namespace fairlead::base {
namespace {

__extension__ using Wide = unsigned __int128;

std::int64_t kernel_now() noexcept {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

#if defined(__x86_64__)

// The kernel's clock costs 22 ns, the processor's counter 9, and a short message needs several readings. Where the
// kernel itself trusts the counter, each thread extrapolates from its last kernel reading by the counter's rate. It
// reads the kernel's clock every millisecond. So the error is at most the rate's change in a millisecond.
bool is_counter_trusted() noexcept {
  const int file = ::open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char text[16] = {};
  const ssize_t length = ::read(file, text, sizeof text);
  ::close(file);
  return length >= 3 && std::string_view(text, 3) == "tsc";
}

class CounterClock {
 public:
  std::int64_t now() noexcept {
    const std::uint64_t ticks = __rdtsc() - ticks_;
    if (ticks >= ticks_good_for_) [[unlikely]]
      return ask();
    return last_ = time_ + static_cast<std::int64_t>((static_cast<Wide>(ticks) * rate_) >> 32);
  }

 private:
  static constexpr std::int64_t kGoodFor = 1'000'000;       // ns
  static constexpr std::int64_t kMeasureLeast = 5'000'000;  // ns between two ends of a rate measurement

  std::int64_t ask() noexcept {
    if (!is_trusted()) return kernel_now();
    const std::uint64_t before = __rdtsc();
    const std::int64_t time = kernel_now();
    const std::uint64_t after = __rdtsc();
    if (first_ticks_ == 0) {
      first_ticks_ = after;
      first_time_ = time;
    } else if (time - first_time_ >= kMeasureLeast && after - before < kAskedFastTicks) {
      // Nanoseconds per tick, times 2^32.
      rate_ = static_cast<std::uint64_t>((static_cast<Wide>(time - first_time_) << 32) / (after - first_ticks_));
      ticks_good_for_ = static_cast<std::uint64_t>((static_cast<Wide>(kGoodFor) << 32) / rate_);
      first_ticks_ = after;
      first_time_ = time;
    }
    ticks_ = after;
    time_ = time > last_ ? time : last_;  // never goes back
    return last_ = time_;
  }
  static bool is_trusted() noexcept {
    static const bool trusted = is_counter_trusted();
    return trusted;
  }

  static constexpr std::uint64_t kAskedFastTicks = 2000;  // slower: the thread was interrupted

  std::uint64_t ticks_ = 0;
  std::int64_t time_ = 0, last_ = 0;
  std::uint64_t rate_ = 0;
  std::uint64_t ticks_good_for_ = 0;  // 0 until the rate is known: every reading asks the kernel
  std::uint64_t first_ticks_ = 0;
  std::int64_t first_time_ = 0;
};

#endif

}  // namespace

Instant MonotonicClock::now() noexcept {
#if defined(__x86_64__)
  thread_local constinit CounterClock clock;
  return Instant(Duration(clock.now()));
#else
  return Instant(Duration(kernel_now()));
#endif
}

}  // namespace fairlead::base
