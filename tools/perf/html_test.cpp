#include "tools/perf/html.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include <nlohmann/json.hpp>

#include "tools/perf/page.hpp"

namespace fairlead::tools {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

PerfPage page_of_test() {
  PerfRow ours{.op = "latency", .path = "udp", .size = 64, .times = observe::Histogram(), .canary_ns = 80};
  ours.times->record(10us, 99);
  ours.times->record(200us, 1);
  const PerfRow rival{
      .op = "latency", .path = "</script><b>&", .size = 64, .times = {}, .ratio = 0.5, .typical_us = 20};
  return {.rows = {ours, rival},
          .counters = {{0.5, {{"link.resends", 1}}}, {1.5, {{"link.resends", 9}}}},
          .environment = {{"kernel", "Linux <6>"}}};
}

/// Returns the text between the first occurrences of two marks.
std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const std::size_t from = text.find(begin);
  if (from == std::string::npos) return {};
  return text.substr(from + begin.size(), text.find(end, from) - from - begin.size());
}

TEST(PerfHtml, HasTheFiguresAsJsonThatNoTextInThemEnds) {
  const std::string text = perf_html(page_of_test());
  const json data = json::parse(between(text, "<script type=\"application/json\" id=\"data\">", "</script>"));
  ASSERT_EQ(data.at("rows").size(), 2U);
  const json &ours = data["rows"][0], &rival = data["rows"][1];
  ASSERT_EQ(ours.at("percentiles").size(), data.at("percents").size());
  EXPECT_NEAR(ours["percentiles"].front(), 10, 0.2);
  EXPECT_NEAR(ours["percentiles"].back(), 200, 2);
  EXPECT_EQ(rival.at("path"), "</script><b>&");
  EXPECT_EQ(rival.at("p50_us"), 20);
  EXPECT_FALSE(rival.contains("percentiles"));
  EXPECT_EQ(data.at("counters")[1].at("values").at("link.resends"), 9);
  EXPECT_EQ(data.at("environment")[0][1], "Linux <6>");
}

TEST(PerfHtml, NeedsNoOtherFile) {
  const std::string text = perf_html(page_of_test());
  for (const char* part : {"<link", " src=", " href=", "@import", "url("}) EXPECT_THAT(text, Not(HasSubstr(part)));
  EXPECT_THAT(text, HasSubstr("Leon Sorokin"));
  for (const std::string_view part : {kPageStyle, kPageScript, kPlotStyle, kPlotScript}) {
    EXPECT_GT(part.size(), 100U);
    EXPECT_THAT(text, HasSubstr(std::string(part)));
    EXPECT_EQ(part.find("</s"), part.npos) << "it would end its element";
  }
}

TEST(PerfHtml, BearsThatNothingWasMeasured) {
  EXPECT_TRUE(json::accept(between(perf_html({}), "id=\"data\">", "</script>")));
}

}  // namespace
}  // namespace fairlead::tools
