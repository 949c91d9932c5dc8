#include "tools/bulkping/figures.hpp"

namespace fairlead::tools {

ClientFigures& ClientFigures::operator+=(const ClientFigures& other) {
  message_round_trip.add(other.message_round_trip);
  bulk_to_server.add(other.bulk_to_server);
  bulk_to_client.add(other.bulk_to_client);
  loops_done += other.loops_done;
  bytes_to_server += other.bytes_to_server;
  bytes_to_client += other.bytes_to_client;
  retries += other.retries;
  return *this;
}

}  // namespace fairlead::tools
