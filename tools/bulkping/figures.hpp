#pragma once
// The counts of a bulkping client and server.

#include <fairlead/net/statistics.hpp>
#include <fairlead/time.hpp>

#include <cstdint>
#include <vector>

#include "observe/histogram.hpp"

namespace fairlead::tools {

/// Of one client thread, or the sum over all threads.
struct ClientFigures {
  observe::Histogram message_round_trip;
  observe::Histogram bulk_to_server;  // from the request to the end of the passive send
  observe::Histogram bulk_to_client;  // from the request to the end of the passive receive
  std::uint64_t loops_done = 0;
  std::uint64_t bytes_to_server = 0;  // verified by the server
  std::uint64_t bytes_to_client = 0;  // verified by the client
  std::uint64_t retries = 0;

  ClientFigures& operator+=(const ClientFigures& other);
};

struct ServerFigures {
  std::uint64_t pings = 0;
  std::uint64_t fetches = 0;
  std::uint64_t deliveries = 0;
  std::uint64_t bytes_fetched = 0;  // verified by the server
  std::uint64_t bytes_delivered = 0;
  std::uint64_t corrupt = 0;    // payloads with wrong bytes
  std::uint64_t failures = 0;   // failed transfers and replies
  std::uint64_t refusals = 0;   // requests that were too big, or too many
  std::uint64_t malformed = 0;  // messages that are not requests
  std::uint64_t retries = 0;
};

}  // namespace fairlead::tools
