#pragma once
// Reads records that are no short messages of the fast path into a Delivery: whole messages, chunks of long ones, and
// messages by reference in the sender's memory. The bytes lie in shared memory, which the peer may still change.

#include <span>

#include "link/link.hpp"
#include "shm/connection.hpp"
#include "shm/counters.hpp"
#include "shm/transport_peer.hpp"
#include "wire/shm_record.hpp"

namespace fairlead::shm {

class Inbox {
 public:
  /// The sender of the record.
  struct Source {
    link::PeerHandle handle;
    const Connection& connection;
    Arriving& arriving;
    base::Instant now;
  };

  explicit Inbox(TransportCounters& counters) : counters_(counters) {}

  /// Fills the delivery. Returns false if the record is malformed or does not continue the previous one.
  bool read(const Source& from, const RingReader::Record& record);
  /// Makes `bytes` the payload of the delivery. The caller fills the envelope.
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
