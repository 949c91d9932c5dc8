#pragma once
// The counts of a nettest's agents.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "tools/nettest/moments.hpp"

namespace fairlead::tools {

struct NettestTally {
  std::uint64_t done = 0;
  std::uint64_t failed = 0;
  std::uint64_t bad = 0;  // not of this test, or corrupted; also counted in `done`

  NettestTally& operator+=(const NettestTally& other);
};

struct NettestFigures {
  NettestTally sent, received;            // messages
  NettestTally bulk_sent, bulk_received;  // bulk buffers
  NettestTally round_trips;               // of a client: completed; of a server: served
  std::uint64_t bytes_sent = 0;           // of messages, or of bulk buffers
  std::uint64_t bytes_received = 0;
  Moments round_trip_time;  // of a client

  NettestFigures& operator+=(const NettestFigures& other);
};

void to_json(nlohmann::json& json, const NettestTally& tally);
void from_json(const nlohmann::json& json, NettestTally& tally);
void to_json(nlohmann::json& json, const NettestFigures& figures);
void from_json(const nlohmann::json& json, NettestFigures& figures);

}  // namespace fairlead::tools
