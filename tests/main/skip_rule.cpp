#include "tests/main/skip_rule.hpp"

#include <fmt/format.h>

#include <fstream>
#include <utility>

namespace fairlead::tests {

SkipRule::SkipRule(AllowedSkips allowed, bool is_strict, std::string log)
    : allowed_(std::move(allowed)), is_strict_(is_strict), log_(std::move(log)) {}

void SkipRule::OnTestEnd(const testing::TestInfo& test) {
  judge(fmt::format("{}.{}", test.test_suite_name(), test.name()), *test.result());
}

// A skip in SetUpTestSuite() or TearDownTestSuite() belongs to no single test.
void SkipRule::OnTestSuiteEnd(const testing::TestSuite& suite) {
  judge(suite.name(), suite.ad_hoc_test_result());
}

void SkipRule::judge(const std::string& test, const testing::TestResult& result) const {
  for (int i = 0; i < result.total_part_count(); ++i) {
    const testing::TestPartResult& part = result.GetTestPartResult(i);
    if (!part.skipped()) continue;
    const std::string reason = part.message();
    const bool is_allowed = allowed_.allows(test, reason);
    note(test, reason, is_allowed);
    if (is_strict_ && !is_allowed)
      ADD_FAILURE() << test << " was skipped (" << reason
                    << "), and nothing may be but what tests/allowed_skips.txt names";
    return;
  }
}

void SkipRule::note(const std::string& test, const std::string& reason, bool is_allowed) const {
  if (log_.empty()) return;
  const std::string line = fmt::format("{} {}: {}\n", is_allowed ? "allowed" : "skipped", test, reason);
  std::ofstream(log_, std::ios::app) << line << std::flush;  // one write, because several programs share the file
}

}  // namespace fairlead::tests
