#include "tools/nettest/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace fairlead::tools {
namespace {

std::unexpected<Error> refuse(std::string why) {
  return std::unexpected(Error{Status::invalid, 0, std::move(why)});
}

}  // namespace

Result<> NettestPlan::check() const {
  if (size < kNettestSizeMin || size > kNettestSizeMax)
    return refuse(fmt::format("a size of {} is not in {}..{}", size, kNettestSizeMin, kNettestSizeMax));
  for (const std::uint32_t each : {concurrency, server_concurrency, clients, servers}) {
    if (each == 0 || each > kNettestConcurrencyMax)
      return refuse(fmt::format("{} clients, servers or buffers at a time: want 1..{}", each, kNettestConcurrencyMax));
  }
  if (timeout < std::chrono::milliseconds{1} || timeout > kNettestTimeoutMax)
    return refuse("a time-out that is not in 1 ms..1 minute");
  const std::uint64_t under_way = std::max(arrivals(), std::uint64_t{concurrency} * servers);
  if (under_way > kNettestRoundTripsMax) {
    return refuse(fmt::format("{} round trips under way at one agent, more than {}: ask for fewer at a time", under_way,
                              kNettestRoundTripsMax));
  }
  const std::uint64_t at_server = is_bulk ? server_concurrency : server_concurrency + arrivals();
  const std::uint64_t at_client = (is_bulk ? 2ULL : 3ULL) * concurrency * servers;
  if (std::max(at_server, at_client) * size > kNettestMemoryMax) {
    return refuse(
        fmt::format("{} buffers of {} bytes in one agent, more than {}: ask for a smaller size or less at a time",
                    std::max(at_server, at_client), size, kNettestMemoryMax));
  }
  return {};
}

void to_json(nlohmann::json& json, const NettestPlan& plan) {
  json = {{"bulk", plan.is_bulk},
          {"size", plan.size},
          {"concurrency", plan.concurrency},
          {"server_concurrency", plan.server_concurrency},
          {"count", plan.count},
          {"clients", plan.clients},
          {"servers", plan.servers},
          {"verify", plan.is_verified},
          {"timeout_ns", plan.timeout.count()}};
}

void from_json(const nlohmann::json& json, NettestPlan& plan) {
  json.at("bulk").get_to(plan.is_bulk);
  json.at("size").get_to(plan.size);
  json.at("concurrency").get_to(plan.concurrency);
  json.at("server_concurrency").get_to(plan.server_concurrency);
  json.at("count").get_to(plan.count);
  json.at("clients").get_to(plan.clients);
  json.at("servers").get_to(plan.servers);
  json.at("verify").get_to(plan.is_verified);
  plan.timeout = Duration(json.at("timeout_ns").get<std::int64_t>());
}

}  // namespace fairlead::tools
