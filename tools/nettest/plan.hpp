#pragma once
// The parameters of a nettest for its agents.

#include <fairlead/error.hpp>
#include <fairlead/time.hpp>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

namespace fairlead::tools {

inline constexpr std::uint64_t kNettestSizeMin = 32;  // a stamp
inline constexpr std::uint64_t kNettestSizeMax = std::uint64_t{1} << 30;
inline constexpr std::uint32_t kNettestConcurrencyMax = 4096;
inline constexpr std::uint64_t kNettestRoundTripsMax = 65536;  // concurrent, at one agent
inline constexpr Duration kNettestTimeoutMax = std::chrono::minutes{1};
inline constexpr std::uint64_t kNettestMemoryMax = std::uint64_t{4} << 30;  // of one agent's buffers

struct NettestPlan {
  bool is_bulk = false;
  std::uint64_t size = 4096;              // of a message or bulk buffer
  std::uint32_t concurrency = 8;          // per client and server: concurrent messages or transfers
  std::uint32_t server_concurrency = 16;  // per server: concurrent transfers
  std::uint64_t count = 0;                // per client and server; 0: until stopped
  std::uint32_t clients = 1;              // in total
  std::uint32_t servers = 1;
  bool is_verified = false;
  Duration timeout = std::chrono::seconds{3};  // of a message with its reply, or of a transfer

  /// Returns the most round trips that can arrive at a server at once.
  std::uint64_t arrivals() const { return std::uint64_t{clients} * concurrency; }
  /// Checks whether an agent may accept the plan.
  Result<> check() const;
};

void to_json(nlohmann::json& json, const NettestPlan& plan);
void from_json(const nlohmann::json& json, NettestPlan& plan);

}  // namespace fairlead::tools
