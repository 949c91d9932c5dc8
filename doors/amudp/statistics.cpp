#include <algorithm>
#include <cstdio>
#include <string>

#include <fmt/format.h>

#include "doors/amudp/library.hpp"

using namespace fairlead::amudp;

const amudp_stats_t AMUDP_initial_stats = {{}, {}, {}, {}, {}, {}, {}, 0, 0, 0, ~amx_tick_t{0},
                                           0,  0,  {}, {}, {}, {}, 0};

int AMUDP_GetEndpointStatistics(ep_t endpoint, amudp_stats_t* stats) {
  if (endpoint == nullptr || stats == nullptr)
    return fail(AM_ERR_BAD_ARG, "AMX_GetEndpointStatistics", "no endpoint or no place");
  *stats = endpoint->stats;
  return AM_OK;
}

int AMUDP_ResetEndpointStatistics(ep_t endpoint) {
  if (endpoint == nullptr) return fail(AM_ERR_BAD_ARG, "AMX_ResetEndpointStatistics", "no endpoint");
  endpoint->stats = AMUDP_initial_stats;
  return AM_OK;
}

int AMUDP_AggregateStatistics(amudp_stats_t* sum, amudp_stats_t* added) {
  if (sum == nullptr || added == nullptr) return fail(AM_ERR_BAD_ARG, "AMX_AggregateStatistics", "two are needed");
  const auto add = [](auto& to, const auto& from) { std::ranges::transform(to, from, std::begin(to), std::plus<>()); };
  add(sum->RequestsSent, added->RequestsSent);
  add(sum->RepliesSent, added->RepliesSent);
  add(sum->RequestsReceived, added->RequestsReceived);
  add(sum->RepliesReceived, added->RepliesReceived);
  add(sum->RequestDataBytesSent, added->RequestDataBytesSent);
  add(sum->ReplyDataBytesSent, added->ReplyDataBytesSent);
  add(sum->RequestTotalBytesSent, added->RequestTotalBytesSent);
  add(sum->ReplyTotalBytesSent, added->ReplyTotalBytesSent);
  sum->ReturnedMessages += added->ReturnedMessages;
  sum->TotalBytesSent += added->TotalBytesSent;
  return AM_OK;
}

const char* AMUDP_DumpStatistics(void* file, amudp_stats_t* stats, int is_global) {
  static std::string text;
  if (stats == nullptr) return "";
  text = fmt::format("{} (short/medium/long):\n", is_global ? "All endpoints" : "Endpoint");
  const auto row = [&](const char* what, const uint64_t(&values)[amudp_NumCategories]) {
    text += fmt::format("  {:<24}{:>12}{:>12}{:>12}\n", what, values[0], values[1], values[2]);
  };
  row("requests sent", stats->RequestsSent);
  row("requests received", stats->RequestsReceived);
  row("replies sent", stats->RepliesSent);
  row("replies received", stats->RepliesReceived);
  row("request bytes", stats->RequestDataBytesSent);
  row("reply bytes", stats->ReplyDataBytesSent);
  text += fmt::format("  {:<24}{:>12}\n  {:<24}{:>12}\n", "messages returned", stats->ReturnedMessages, "bytes sent",
                      stats->TotalBytesSent);
  std::uint64_t to_left = 0;
  for (const auto& bundle : library().bundles) {
    for (const auto& each : bundle->endpoints) to_left += each->endpoint->requests_to_left();
  }
  text += fmt::format("  {:<24}{:>12}\n", "requests to ranks that had left", to_left);
  if (file != nullptr) std::fputs(text.c_str(), static_cast<std::FILE*>(file));
  return text.c_str();
}
