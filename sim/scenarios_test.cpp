// Each file of sim/scenarios, over a few seeds.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "sim/scenario_file.hpp"
#include "sim/world.hpp"

namespace fairlead::sim {
namespace {

constexpr std::uint64_t kSeeds = 2;

std::vector<std::string> scenario_files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(FAIRLEAD_SOURCE_FOLDER "/sim/scenarios"))
    files.push_back(entry.path().string());
  std::ranges::sort(files);
  return files;
}

class ScenariosTest : public testing::TestWithParam<std::string> {};

TEST_P(ScenariosTest, HoldsOverSomeSeeds) {
  const auto scenario = read_scenario(GetParam());
  ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Report report = World(*scenario, seed).run();
    EXPECT_FALSE(report.finding) << *report.finding << "\n  replay: ./dev sim --seed " << seed << " --scenario "
                                 << GetParam();
    EXPECT_GT(report.ends.at(Status::ok), 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Library, ScenariosTest, testing::ValuesIn(scenario_files()),
                         [](const auto& file) { return std::filesystem::path(file.param).stem().string(); });

}  // namespace
}  // namespace fairlead::sim
