// Runs the whole test suite of rdma-core's Python bindings, as Debian ships it in rdma-core's documentation, under
// `fairlead run`. pyverbs_skips.txt gives the reason for each test that skips itself.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/child_process.hpp"

namespace fairlead::tests {
namespace {

namespace fs = std::filesystem;

constexpr const char* kShipped = "/usr/share/doc/rdma-core/tests";
constexpr const char* kPython = "/usr/bin/python3";  // another python3 in PATH may lack pyverbs
constexpr const char* kReasons = FAIRLEAD_SOURCE_FOLDER "/tests/pyverbs_skips.txt";
constexpr int kPassedAtLeast = 143;

int number_after(const std::string& text, const std::string& pattern) {
  std::smatch found;
  return std::regex_search(text, found, std::regex(pattern)) ? std::stoi(found[1]) : 0;
}

struct Skipped {
  std::string test;    // test_mr.DmaBufMRTest.test_dmabuf_reg_mr
  std::string reason;  // as the test says it
};

/// Reads what `unittest -v` says. A test's name and its result may be on different lines, with other output between.
std::vector<Skipped> skipped_in(const std::string& report) {
  const std::regex name(R"(^(\w+) \(tests\.(test_\w+\.\w+)[.)])"), skip(R"((?:^|\.\.\. )skipped ['"](.*)['"])");
  std::vector<Skipped> all;
  std::istringstream lines(report);
  std::string test;
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    if (std::regex_search(line, found, name)) test = fmt::format("{}.{}", found[2].str(), found[1].str());
    if (std::regex_search(line, found, skip)) all.push_back({test, found[1]});
  }
  return all;
}

/// A row of the table: tests whose name matches may skip themselves for this reason.
struct PermittedSkip {
  std::string line;
  std::regex test, reason;
};

std::vector<PermittedSkip> permitted_skips() {
  std::vector<PermittedSkip> rows;
  std::ifstream table(kReasons);
  for (std::string line; std::getline(table, line);) {
    if (line.empty() || line[0] == '#') continue;
    const auto first = line.find(" | "), second = line.find(" | ", first + 3);
    if (second == std::string::npos) {
      ADD_FAILURE() << "a row without three columns: " << line;
      continue;
    }
    rows.push_back({line, std::regex(line.substr(0, first)), std::regex(line.substr(first + 3, second - first - 3))});
  }
  return rows;
}

class Pyverbs : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(kShipped)) GTEST_SKIP() << "rdma-core's tests are not installed";
    if (run({kPython, "-c", "import pyverbs.device"}).exit_code != 0)
      GTEST_SKIP() << "python3-pyverbs is not installed";
    const Finished unpacked =
        run({"sh", "-c", fmt::format("mkdir {0} && cp {1}/* {0} && gunzip -f {0}/*.gz", folder_, kShipped)});
    ASSERT_EQ(unpacked.exit_code, 0) << unpacked.error_output;
  }
  ~Pyverbs() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  std::string folder_ = fmt::format("{}pyverbs.{}", testing::TempDir(), ::getpid());
};

TEST_F(Pyverbs, AllModulesPassOrSayWhyNot) {
  std::vector<std::string> words{"env", "-C", folder_, FAIRLEAD_COMMAND, "run", "--", kPython, "run_tests.py", "-v"};
  for (const auto& entry : fs::directory_iterator(folder_)) {
    const std::string name = entry.path().stem().string();
    if (name.starts_with("test_")) words.push_back("tests." + name);
  }
  const Finished finished = run(words, std::chrono::seconds{300});
  const std::string& report = finished.error_output;
  EXPECT_EQ(finished.exit_code, 0) << report;
  const std::vector<Skipped> skipped = skipped_in(report);
  EXPECT_EQ(skipped.size(), static_cast<std::size_t>(number_after(report, "skipped=([0-9]+)"))) << report;
  EXPECT_GE(number_after(report, "Ran ([0-9]+) tests") - static_cast<int>(skipped.size()), kPassedAtLeast) << report;
  const std::vector<PermittedSkip> rows = permitted_skips();
  for (const Skipped& each : skipped) {
    EXPECT_TRUE(std::ranges::any_of(rows,
                                    [&](const PermittedSkip& row) {
                                      return std::regex_search(each.test, row.test) &&
                                             std::regex_search(each.reason, row.reason);
                                    }))
        << each.test << " skips itself, and " << kReasons << " gives no reason: " << each.reason;
  }
}

}  // namespace
}  // namespace fairlead::tests
