#pragma once
// What the agents of a nettest are told to do.

#include <fairlead/error.hpp>
#include <fairlead/time.hpp>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

namespace fairlead::tools {

inline constexpr std::uint64_t kNettestSizeMin = 32;  // a stamp
inline constexpr std::uint64_t kNettestSizeMax = std::uint64_t{1} << 30;
inline constexpr std::uint32_t kNettestConcurrencyMax = 4096;
inline constexpr std::uint64_t kNettestRoundTripsMax = 65536;  // under way at one agent
inline constexpr Duration kNettestTimeoutMax = std::chrono::minutes{1};
inline constexpr std::uint64_t kNettestMemoryMax = std::uint64_t{4} << 30;  // of one agent's buffers

struct NettestPlan {
  bool is_bulk = false;
  std::uint64_t size = 4096;              // of a message, or of a bulk buffer
  std::uint32_t concurrency = 8;          // of a client with each server: messages, or transfers, under way
  std::uint32_t server_concurrency = 16;  // of a server: transfers under way
  std::uint64_t count = 0;                // of a client with each server; 0: until it is told to stop
  std::uint32_t clients = 1;              // in all
  std::uint32_t servers = 1;
  bool is_verified = false;
  Duration timeout = std::chrono::seconds{3};  // of a message with its reply, or of a transfer

  /// Round trips that may come to a server at once.
  std::uint64_t arrivals() const { return std::uint64_t{clients} * concurrency; }
  /// Whether an agent may be asked for this.
  Result<> check() const;
};

void to_json(nlohmann::json& json, const NettestPlan& plan);
void from_json(const nlohmann::json& json, NettestPlan& plan);

}  // namespace fairlead::tools
