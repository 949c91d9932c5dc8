#pragma once
// What the agents of a nettest count.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "tools/moments.hpp"

namespace fairlead::tools {

struct NettestTally {
  std::uint64_t done = 0;
  std::uint64_t failed = 0;
  std::uint64_t bad = 0;  // not what they should be: no part of this test, or damaged; counted in `done`, too

  NettestTally& operator+=(const NettestTally& other);
};

struct NettestFigures {
  NettestTally sent, received;            // messages
  NettestTally bulk_sent, bulk_received;  // bulk buffers
  NettestTally round_trips;               // of a client: replied to, or there and back; of a server: served
  std::uint64_t bytes_sent = 0;           // of messages, or (bulk) of bulk buffers
  std::uint64_t bytes_received = 0;
  Moments round_trip_time;  // of a client

  NettestFigures& operator+=(const NettestFigures& other);
};

void to_json(nlohmann::json& json, const NettestTally& tally);
void from_json(const nlohmann::json& json, NettestTally& tally);
void to_json(nlohmann::json& json, const NettestFigures& figures);
void from_json(const nlohmann::json& json, NettestFigures& figures);

}  // namespace fairlead::tools
