#include "tests/main/time_limit.hpp"

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace fairlead::tests {
namespace {

std::string verdict;  // of the current test, if it does not end

// Runs as a signal handler.
void end_program(int) {
  static_cast<void>(!::write(STDERR_FILENO, verdict.data(), verdict.size()));
  std::abort();
}

}  // namespace

TimeLimit::TimeLimit(std::chrono::seconds most) : most_(most) {
  ::signal(SIGRTMAX, end_program);
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGRTMAX;
  if (::timer_create(CLOCK_MONOTONIC, &event, &timer_) != 0) std::abort();
}

TimeLimit::~TimeLimit() {
  ::timer_delete(timer_);
}

void TimeLimit::OnTestStart(const testing::TestInfo& test) {
  verdict = fmt::format("{}.{} has not ended within {} s\n", test.test_suite_name(), test.name(), most_.count());
  set(most_);
}

void TimeLimit::OnTestEnd(const testing::TestInfo&) {
  set({});
}

/// Of zero: stops the timer.
void TimeLimit::set(std::chrono::seconds left) {
  itimerspec at{};
  at.it_value = {.tv_sec = left.count(), .tv_nsec = 0};
  if (::timer_settime(timer_, 0, &at, nullptr) != 0) std::abort();
}

}  // namespace fairlead::tests
