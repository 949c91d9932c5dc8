#include "tools/nettest/figures.hpp"

#include <nlohmann/json.hpp>

namespace fairlead::tools {

NettestTally& NettestTally::operator+=(const NettestTally& other) {
  done += other.done;
  failed += other.failed;
  bad += other.bad;
  return *this;
}

NettestFigures& NettestFigures::operator+=(const NettestFigures& other) {
  sent += other.sent;
  received += other.received;
  bulk_sent += other.bulk_sent;
  bulk_received += other.bulk_received;
  round_trips += other.round_trips;
  bytes_sent += other.bytes_sent;
  bytes_received += other.bytes_received;
  round_trip_time += other.round_trip_time;
  return *this;
}

void to_json(nlohmann::json& json, const NettestTally& tally) {
  json = {{"done", tally.done}, {"failed", tally.failed}, {"bad", tally.bad}};
}

void from_json(const nlohmann::json& json, NettestTally& tally) {
  json.at("done").get_to(tally.done);
  json.at("failed").get_to(tally.failed);
  json.at("bad").get_to(tally.bad);
}

void to_json(nlohmann::json& json, const NettestFigures& figures) {
  json = {{"sent", figures.sent},
          {"received", figures.received},
          {"bulk_sent", figures.bulk_sent},
          {"bulk_received", figures.bulk_received},
          {"round_trips", figures.round_trips},
          {"bytes_sent", figures.bytes_sent},
          {"bytes_received", figures.bytes_received},
          {"round_trip_time", figures.round_trip_time}};
}

void from_json(const nlohmann::json& json, NettestFigures& figures) {
  json.at("sent").get_to(figures.sent);
  json.at("received").get_to(figures.received);
  json.at("bulk_sent").get_to(figures.bulk_sent);
  json.at("bulk_received").get_to(figures.bulk_received);
  json.at("round_trips").get_to(figures.round_trips);
  json.at("bytes_sent").get_to(figures.bytes_sent);
  json.at("bytes_received").get_to(figures.bytes_received);
  json.at("round_trip_time").get_to(figures.round_trip_time);
}

}  // namespace fairlead::tools
