#pragma once
// What both ends of bulkping count.

#include <fairlead/net/statistics.hpp>
#include <fairlead/time.hpp>

#include <cstdint>
#include <vector>

#include "observe/histogram.hpp"

namespace fairlead::tools {

/// Of a client's thread, or of all of them added up.
struct ClientFigures {
  observe::Histogram message_round_trip;
  observe::Histogram bulk_to_server;  // from the request to the end of the passive send
  observe::Histogram bulk_to_client;  // from the request to the end of the passive receive
  std::uint64_t loops_done = 0;
  std::uint64_t bytes_to_server = 0;  // verified there
  std::uint64_t bytes_to_client = 0;  // verified here
  std::uint64_t retries = 0;

  ClientFigures& operator+=(const ClientFigures& other);
};

struct ServerFigures {
  std::uint64_t pings = 0;
  std::uint64_t fetches = 0;
  std::uint64_t deliveries = 0;
  std::uint64_t bytes_fetched = 0;  // verified here
  std::uint64_t bytes_delivered = 0;
  std::uint64_t corrupt = 0;    // payloads that were not what they should be
  std::uint64_t failures = 0;   // transfers and replies that did not work
  std::uint64_t refusals = 0;   // requests that could not be served: too big, too many waiting
  std::uint64_t malformed = 0;  // messages that are no requests
  std::uint64_t retries = 0;
};

}  // namespace fairlead::tools
