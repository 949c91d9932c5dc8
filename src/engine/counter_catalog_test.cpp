// The catalogue of counters, the statistics and docs/counters.md contain the same counters.

#include "engine/counter_catalog.hpp"

#include <gmock/gmock.h>

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <set>

#include "engine/application_counters.hpp"
#include "engine/engine_pair_for_tests.hpp"
#include "path/fault_counters.hpp"

namespace fairlead::engine {
namespace {

std::set<std::string> catalog_names() {
  std::set<std::string> names;
  for (const CounterMeaning& counter : counter_catalog()) names.insert(counter.name);
  return names;
}

std::string page() {
  std::string text =
      "# Counters\n\n"
      "Every counter of the statistics (`fairlead explain NAME` explains one). This page is generated from the tables "
      "in the\n"
      "sources; `engine_test --gtest_filter=CounterCatalog.*` compares it.\n\n"
      "| counter | what it counts |\n| --- | --- |\n";
  for (const auto& [name, sentence, kind] : counter_catalog()) text += fmt::format("| `{}` | {} |\n", name, sentence);
  return text;
}

TEST(CounterCatalog, NamesEachCounterOnce) {
  EXPECT_EQ(catalog_names().size(), counter_catalog().size());
}

// What falls again is no total, for a monitoring system neither.
TEST(CounterCatalog, KnowsPresentStatesAndMaximaAsGauges) {
  const std::set<std::string> kStates{
      "link.segments_in_flight", "link.messages_pending", "path.fault.held", "qp.regions",      "shm.shared_bytes",
      "shm.traced_bytes",        "shm.left_in_place",     "shm.huge_bytes",  "host.moved_bytes"};
  for (const CounterMeaning& counter : counter_catalog()) {
    EXPECT_EQ(counter.kind == CounterKind::gauge, counter.name.ends_with("_most") || kStates.contains(counter.name))
        << counter.name;
  }
}

using CounterFacts = EnginePair;

TEST_F(CounterFacts, AreAllInTheCatalog) {
  std::set<std::string> told;
  for (const observe::CounterFact& fact : near_.engine->facts().counters) told.insert(fact.name);
  for (const auto& row : path::kFaultCounterRows) told.insert(fmt::format("path.fault.{}", row.name));
  for (const auto& row : kApplicationCounterRows) told.insert(fmt::format("host.{}", row.name));
  EXPECT_THAT(told, testing::ContainerEq(catalog_names()));
}

// `fairlead explain` shows a row alone, so no sentence may lean on the row above it.
TEST(CounterCatalog, HasNoSentenceThatNeedsAnother) {
  for (const CounterMeaning& counter : counter_catalog()) {
    for (const std::string_view leaning :
         {"those datagrams", "those messages", "of those,", "the next ", "of the writes", "such memory"})
      EXPECT_THAT(counter.sentence, testing::Not(testing::HasSubstr(leaning))) << counter.name;
  }
}

TEST(CounterCatalog, IsThePageOfTheDocumentation) {
  std::ifstream stream(FAIRLEAD_SOURCE_FOLDER "/docs/counters.md");
  const std::string written{std::istreambuf_iterator<char>(stream), {}};
  if (written == page()) return;
  const std::string made = testing::TempDir() + "counters.md";
  std::ofstream(made) << page();
  FAIL() << "docs/counters.md is not what the sources say: copy " << made << " over it";
}

}  // namespace
}  // namespace fairlead::engine
