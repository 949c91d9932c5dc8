// `fairlead top` examines this very process, from outside like any other.

#include <gmock/gmock.h>
#include <unistd.h>

#include <fairlead/net.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <limits>
#include <set>
#include <sstream>

#include "tools/top/engines.hpp"
#include "tools/top/export.hpp"
#include "tools/top/peer.hpp"
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
  EXPECT_THAT(text,
              AllOf(HasSubstr("# TYPE fairlead_link_resends counter\n# HELP fairlead_link_resends segments that"),
                    HasSubstr("# TYPE fairlead_qp_regions gauge\n"), HasSubstr("\nfairlead_qp_regions{pid="),
                    HasSubstr("# TYPE fairlead_ports gauge\n"), HasSubstr("\nfairlead_ports{pid="),
                    HasSubstr("\nfairlead_link_resends_total{pid=\"" + pid() + "\",program=\"tools_test\",address="),
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
  for (const char* metric : {"\nfairlead_link_resends_total{", "\nfairlead_peers{"})
    EXPECT_EQ(text.find(metric), text.rfind(metric)) << text;
}

// Each family has one type, and each sample the name that its type asks for.
TEST_F(TopOfThisProcess, KeepsTheRulesOfOpenMetrics) {
  std::istringstream lines(top_openmetrics(look()));
  std::string family, type, last;
  std::set<std::string> families;
  std::size_t samples = 0;
  for (std::string line; std::getline(lines, line); last = line) {
    ASSERT_NE(last, "# EOF") << "nothing follows the end";
    std::istringstream words(line);
    std::string first, second;
    words >> first;
    if (first == "#") {
      words >> second;
      if (second == "TYPE") {
        words >> family >> type;
        EXPECT_TRUE(families.insert(family).second) << family;
        EXPECT_FALSE(family.ends_with("_total")) << family;
        EXPECT_TRUE(type == "counter" || type == "gauge") << line;
      }
      continue;
    }
    ++samples;
    EXPECT_EQ(line.substr(0, line.find('{')), family + (type == "counter" ? "_total" : "")) << line;
  }
  EXPECT_EQ(last, "# EOF");
  EXPECT_EQ(samples, families.size());
  EXPECT_GT(samples, 100u);
}

/// A peer of a made-up engine.
observe::StatsPeer peer_at(std::string_view address, std::int64_t round_trip) {
  observe::StatsPeer peer;
  std::ranges::copy(address, peer.address.begin());
  std::ranges::copy(std::string_view("udp"), peer.path.begin());
  peer.round_trip = round_trip;
  return peer;
}

class TopOfAPeer : public testing::Test {
 protected:
  TopOfAPeer() {
    for (const pid_t pid : {7, 8}) seen_.engines.push_back(made_up(pid, "program", 1));
    seen_.engines[0].view.peers = {peer_at("10.0.0.5:20480", 1'500'000), peer_at("10.0.0.5:20481", 1),
                                   peer_at("10.0.0.50:20480", 1), peer_at("[fd88::1]:20480", 1)};
    seen_.engines[1].view.peers = {peer_at("10.0.0.6:20480", 1)};
    observe::StatsPair pair;
    pair.number = 1234;
    std::ranges::copy(std::string_view("10.0.0.5:20480"), pair.peer.begin());
    seen_.engines[0].view.pairs = {pair, observe::StatsPair{.number = 5678}};
  }
  std::size_t peers_of(std::string_view peer) const {
    std::size_t sum = 0;
    for (const SeenEngine& engine : engines_with_peer(seen_, peer).engines) sum += engine.view.peers.size();
    return sum;
  }

  SeenEngines seen_;
};

TEST_F(TopOfAPeer, SelectsByAddressWithOrWithoutThePort) {
  EXPECT_EQ(peers_of("10.0.0.5:20480"), 1u);
  EXPECT_EQ(peers_of("10.0.0.5"), 2u);
  EXPECT_EQ(peers_of("fd88::1"), 1u);
  EXPECT_EQ(peers_of("[fd88::1]:20480"), 1u);
  EXPECT_EQ(peers_of("10.0.0"), 0u);
  EXPECT_EQ(peers_of(""), 0u);
  EXPECT_EQ(engines_with_peer(seen_, "10.0.0.6").engines.at(0).pid, 8);
}

TEST_F(TopOfAPeer, ShowsEachFieldOfThePageAndItsQueuePairs) {
  const SeenEngines found = engines_with_peer(seen_, "10.0.0.5:20480");
  ASSERT_EQ(found.engines.size(), 1u);
  const std::string text = top_peers(found.engines[0], Instant{});
  for (const observe::StatsField& field : observe::kStatsPeerFields)
    EXPECT_THAT(text, HasSubstr("\n" + std::string(field.name)));
  EXPECT_THAT(text, AllOf(HasSubstr("1.500 ms"), HasSubstr("1234"), Not(HasSubstr("5678")), Not(HasSubstr("20481"))));
}

TEST_F(TopOfAPeer, IsJsonOfTheSameForm) {
  const json engine = json::parse(top_json(engines_with_peer(seen_, "10.0.0.5:20480"))).at("engines").at(0);
  EXPECT_EQ(engine.at("peers").size(), 1u);
  EXPECT_EQ(engine.at("peers")[0].at("round_trip"), 1'500'000);
  EXPECT_EQ(engine.at("pairs")[0].at("number"), 1234);
  EXPECT_FALSE(engine.contains("peers_total"));
}

TEST(Top, BearsAnyTime) {
  SeenEngine engine = made_up(7, "program", 1);
  engine.view.header.started_at = std::numeric_limits<std::int64_t>::min();
  EXPECT_THAT(top_detail(engine, Instant{std::chrono::seconds(100)}), HasSubstr("started 9223372136.9 s ago"));
}

}  // namespace
}  // namespace fairlead::tools
