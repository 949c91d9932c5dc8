#pragma once
// While it lives, the calling thread shares one processor with a thread that computes.

#include <sched.h>
#include <sys/resource.h>

#include <chrono>
#include <stop_token>
#include <thread>

#include "base/ensure.hpp"

namespace fairlead::base {

class CrowdedProcessor {
 public:
  CrowdedProcessor() {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<unsigned>(::sched_getcpu()), &one);
    ENSURE(::sched_getaffinity(0, sizeof all_, &all_) == 0 && ::sched_setaffinity(0, sizeof one, &one) == 0,
           "no processor of its own");
    computes_ = std::jthread([](const std::stop_token& stop) {
      while (!stop.stop_requested()) continue;
    });
  }
  ~CrowdedProcessor() {
    computes_ = {};
    ::sched_setaffinity(0, sizeof all_, &all_);
  }
  CrowdedProcessor(const CrowdedProcessor&) = delete;
  CrowdedProcessor& operator=(const CrowdedProcessor&) = delete;

  /// Returns whether a thread that polls in vain sleeps now and then.
  template <typename Poll>
  bool makes_sleep(Poll&& poll) const {
    const long before = sleeps();
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (sleeps() < before + 5 && std::chrono::steady_clock::now() < until)
      for (int i = 0; i < 1000; ++i) poll();
    return sleeps() >= before + 5;
  }

 private:
  /// How often the calling thread has slept so far.
  static long sleeps() {
    rusage used{};
    ::getrusage(RUSAGE_THREAD, &used);
    return used.ru_nvcsw;
  }

  cpu_set_t all_;
  std::jthread computes_;
};

}  // namespace fairlead::base
