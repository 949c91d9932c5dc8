// Runs the test suite of rdma-core's Python bindings, as Debian ships it in rdma-core's documentation, under `fairlead
// run`.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <regex>

#include "tests/child_process.hpp"

namespace fairlead::tests {
namespace {

namespace fs = std::filesystem;

constexpr const char* kShipped = "/usr/share/doc/rdma-core/tests";
constexpr const char* kPython = "/usr/bin/python3";  // another python3 in PATH may lack pyverbs
constexpr int kPassedAtLeast = 134;

int number_after(const std::string& text, const std::string& pattern) {
  std::smatch found;
  return std::regex_search(text, found, std::regex(pattern)) ? std::stoi(found[1]) : 0;
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

TEST_F(Pyverbs, ModulesPass) {
  std::vector<std::string> words{"env", "-C", folder_, FAIRLEAD_COMMAND, "run", "--", kPython, "run_tests.py", "-v"};
  for (const char* module : {"addr", "cq", "cq_events", "cqex", "pd", "mr", "qp", "qpex", "atomic", "relaxed_ordering",
                             "fork", "device", "shared_pd", "odp", "parent_domain", "rdmacm"}) {
    words.push_back(fmt::format("tests.test_{}", module));
  }
  const Finished finished = run(words, std::chrono::seconds{110});
  const std::string& report = finished.error_output;
  EXPECT_EQ(finished.exit_code, 0) << report;
  const int passed = number_after(report, "Ran ([0-9]+) tests") - number_after(report, "skipped=([0-9]+)");
  EXPECT_GE(passed, kPassedAtLeast) << report;
}

}  // namespace
}  // namespace fairlead::tests
