#pragma once
// Records that are no short messages of the fast path, read into a delivery: whole messages, pieces of long ones, and
// those that lie in the sender's memory. The bytes lie in memory that the peer shares and may still change.

#include <span>

#include "link/link.hpp"
#include "shm/connection.hpp"
#include "shm/counters.hpp"
#include "shm/transport_peer.hpp"
#include "wire/shm_record.hpp"

namespace fairlead::shm {

class Inbox {
 public:
  /// Whose record it is.
  struct Source {
    link::PeerHandle handle;
    const Connection& connection;
    Arriving& arriving;
    base::Instant now;
  };

  explicit Inbox(TransportCounters& counters) : counters_(counters) {}

  /// Fills the delivery. False if the record is none, or does not continue what came before it.
  bool read(const Source& from, const RingReader::Record& record);
  /// Makes these bytes the delivery; its envelope is the caller's.
  void set_whole(link::PeerHandle from, std::span<const std::byte> bytes);
  link::Delivery& delivery() noexcept { return delivery_; }

 private:
  bool read_part(const Source& from, const RingReader::Record& record);
  bool find_payload(const Connection& from);

  TransportCounters& counters_;
  wire::ShmRecord record_;
  link::Delivery delivery_;
};

}  // namespace fairlead::shm
