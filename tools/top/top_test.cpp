// `fairlead top` examines this very process, from outside like any other.

#include <gmock/gmock.h>
#include <unistd.h>

#include <fairlead/net.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <limits>

#include "tools/top/engines.hpp"
#include "tools/top/export.hpp"
#include "tools/top/table.hpp"

namespace fairlead::tools {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class TopOfThisProcess : public testing::Test {
 protected:
  void SetUp() override { here_ = value_or_exit(machine_.start_and_wait("127.0.0.1@udp:*:35:*")).address(); }
  SeenEngines look(bool wants_flights = false) { return value_or_exit(look_at_engines(::getpid(), wants_flights)); }
  static std::string pid() { return std::to_string(::getpid()); }

  net::Domain domain_ = value_or_exit(net::Domain::open());
  net::TransferMachine machine_{domain_};
  std::string here_;
};

TEST_F(TopOfThisProcess, HasARowOfIt) {
  const std::string table = top_table(look(), nullptr, 0, {});
  EXPECT_THAT(table, AllOf(HasSubstr("pid"), HasSubstr(pid()), HasSubstr("tools_test"), HasSubstr("127.0.0.1:")));
  EXPECT_THAT(table, Not(HasSubstr("does not answer")));
  EXPECT_THAT(top_table(look(), nullptr, 0, {.filter = "no such program"}), Not(HasSubstr(pid())));
}

TEST_F(TopOfThisProcess, IsJsonByTheNamesOfTheLayout) {
  const json all = json::parse(top_json(look()));
  ASSERT_EQ(all.at("engines").size(), 1u);
  const json& engine = all.at("engines")[0];
  EXPECT_EQ(engine.at("pid"), ::getpid());
  EXPECT_EQ(engine.at("program"), "tools_test");
  EXPECT_EQ(engine.at("is_fresh"), true);
  EXPECT_EQ(engine.at("counters").at("link.resends"), 0);
  EXPECT_TRUE(engine.at("peers").empty());
  EXPECT_EQ(engine.at("ports").size(), 1u);
  EXPECT_EQ(engine.at("ports")[0].at("takes_active"), false);
  EXPECT_FALSE(engine.contains("ports_total"));
  EXPECT_TRUE(all.at("unreadable").empty());
}

TEST_F(TopOfThisProcess, IsOpenMetrics) {
  const std::string text = top_openmetrics(look());
  EXPECT_THAT(text, AllOf(HasSubstr("# TYPE fairlead_link_resends unknown\n# HELP fairlead_link_resends segments that"),
                          HasSubstr("\nfairlead_link_resends{pid=\"" + pid() + "\",program=\"tools_test\",address="),
                          testing::EndsWith("# EOF\n")));
}

TEST_F(TopOfThisProcess, HasDetails) {
  const std::string text = top_detail(look().engines.at(0), Instant::clock::now());
  EXPECT_THAT(text, AllOf(HasSubstr("process " + pid()), HasSubstr("\nports:\n"), Not(HasSubstr("\npeers:\n")),
                          HasSubstr("\ncounters that are not 0")));
}

TEST(Top, SaysWhyAProcessHasNothingToShow) {
  const auto none = look_at_engines(::getpid());
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("has no engine now"));
  const auto nobody = look_at_engines(0x7FFF'FFFF);
  ASSERT_FALSE(nobody);
  EXPECT_THAT(nobody.error().message, HasSubstr("no process 2147483647 is here"));
}

/// An engine as another process's page could describe it.
SeenEngine made_up(pid_t pid, std::string program, std::uint64_t resends) {
  SeenEngine engine{.pid = pid, .program = std::move(program), .is_fresh = true, .view = {}};
  observe::StatsCounter counter{.name = {}, .value = resends};
  std::ranges::copy(std::string_view("link.resends"), counter.name.begin());
  engine.view.counters.push_back(counter);
  return engine;
}

TEST(Top, OrdersItsRows) {
  SeenEngines seen;
  for (const auto& [pid, resends] : {std::pair(3, 10U), std::pair(1, 30U), std::pair(2, 20U)})
    seen.engines.push_back(made_up(pid, "program", resends));
  const auto order = [&](const char* column) {
    const std::string table = top_table(seen, nullptr, 0, {.sort = column, .filter = {}});
    return std::array{table.find("\n1 "), table.find("\n2 "), table.find("\n3 ")};
  };
  const auto by_pid = order("pid"), by_resent = order("resent");
  EXPECT_TRUE(std::ranges::is_sorted(by_pid));
  EXPECT_TRUE(std::ranges::is_sorted(by_resent));
  seen.engines[0].view.counters[0].value = 99;
  EXPECT_FALSE(std::ranges::is_sorted(order("resent")));
}

TEST(Top, TellsFiguresOfASecondOfThoseThatItHasSeenBefore) {
  SeenEngines before, now;
  before.engines.push_back(made_up(7, "old", 100));
  now.engines.push_back(made_up(7, "old", 300));
  now.engines.push_back(made_up(8, "new", 300));
  const std::string table = top_table(now, &before, 0.5, {});
  EXPECT_THAT(table, AllOf(HasSubstr("resent/s"), testing::ContainsRegex("7  +old .* 400 "),
                           testing::ContainsRegex("8  +new .* - ")));
}

// A process chooses its name and the contents of its page: a terminal, JSON and metrics must tolerate any text.
TEST(Top, BearsAnyText) {
  SeenEngines seen;
  seen.engines.push_back(made_up(7, "\033[31m\"quoted\\\n\xFF", 1));
  seen.engines[0].view.header.address.fill('\033');
  seen.engines[0].view.report = "\033]0;title\a";
  for (const std::string& text :
       {top_table(seen, nullptr, 0, {}), top_detail(seen.engines[0], Instant{}), top_openmetrics(seen)})
    EXPECT_EQ(text.find_first_of("\033\a\xFF"), text.npos) << text;
  EXPECT_THAT(top_openmetrics(seen), HasSubstr("program=\"?[31m\\\"quoted\\\\??\""));
  EXPECT_TRUE(json::accept(top_json(seen)));
}

// Terminals treat U+009B like ESC [.
TEST(Top, WritesJsonInAscii) {
  SeenEngines seen;
  seen.engines.push_back(made_up(7,
                                 "\xC2\x9B"
                                 "31m\x7F",
                                 1));
  const std::string text = top_json(seen);
  EXPECT_TRUE(std::ranges::all_of(text, [](char letter) { return letter == '\n' || (letter >= ' ' && letter <= '~'); }))
      << text;
  EXPECT_EQ(json::parse(text).at("engines")[0].at("program"), seen.engines[0].program);
}

// Prometheus refuses all samples if one occurs twice.
TEST(Top, TellsEachMetricOfAnEngineOnce) {
  SeenEngines seen;
  seen.engines.assign(2, made_up(7, "twice", 5));
  seen.engines[0].view.counters.push_back(seen.engines[0].view.counters[0]);
  const std::string text = top_openmetrics(seen);
  for (const char* metric : {"\nfairlead_link_resends{", "\nfairlead_peers{"})
    EXPECT_EQ(text.find(metric), text.rfind(metric)) << text;
}

TEST(Top, BearsAnyTime) {
  SeenEngine engine = made_up(7, "program", 1);
  engine.view.header.started_at = std::numeric_limits<std::int64_t>::min();
  EXPECT_THAT(top_detail(engine, Instant{std::chrono::seconds(100)}), HasSubstr("started 9223372136.9 s ago"));
}

}  // namespace
}  // namespace fairlead::tools
