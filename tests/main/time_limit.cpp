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

TimeLimit::TimeLimit(unsigned seconds) : seconds_(seconds) {
  ::signal(SIGALRM, end_program);
}

void TimeLimit::OnTestStart(const testing::TestInfo& test) {
  verdict = fmt::format("{}.{} has not ended within {} s\n", test.test_suite_name(), test.name(), seconds_);
  ::alarm(seconds_);
}

void TimeLimit::OnTestEnd(const testing::TestInfo&) {
  ::alarm(0);
}

}  // namespace fairlead::tests
