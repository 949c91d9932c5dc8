#pragma once
// Deliberate faults, which prove that the simulator detects such faults. Each strikes once, at a given opportunity.

#include <cstdint>
#include <vector>

#include "path/path.hpp"

namespace fairlead::sim {

class Sabotage {
 public:
  enum class Kind : std::uint8_t {
    none,
    wrong_byte,         // a byte changes in transit, and the checksum with it
    repeated_message,   // a segment is repeated under the number of another one
    lost_event,         // an application does not get an event
    repeated_event,     // an application gets an event twice
    late_write,         // memory is written after its operation has ended
    lost_record,        // a process skips a record that another process of its machine wrote
    repeated_record,    // a process reads the records of one pass twice
    forgiven_liar,      // a process skips invalid records of another one of its machine, and keeps that peer
    overrun_record,     // an invalid record makes a process change what another one has written
    changed_header,     // a segment gets the next one's sequence number and a valid checksum: sealing detects it
    forgotten_header,   // the same, while sealing authenticates only the payload
    skipped_sequence,   // a replaced engine counts one segment too many as received
    forgotten_arrival,  // a replaced engine forgets a segment that arrived out of order
    forgotten_answer,   // a replaced engine forgets an answer that it owed a peer
    forgotten_segment,  // a replaced engine forgets an answer that its peer has not acknowledged
    forgotten_keys,     // a replaced engine forgets keys that its peer may use from now on
    skipped_request,    // a queue pair of a replaced engine counts one request too many as executed
    forgotten_request,  // a queue pair of a replaced engine forgets the last request posted to it
    forgotten_receive,  // a queue pair of a replaced engine forgets the last receive posted to it
  };

  explicit Sabotage(Kind kind, std::uint64_t strikes_at = 20) : kind_(kind), chances_left_(strikes_at) {}

  bool is(Kind kind) const { return kind_ == kind; }
  /// Returns true once, at its time.
  bool strikes(Kind kind) {
    if (kind_ != kind || chances_left_ == 0) return false;
    --chances_left_;
    return chances_left_ == 0;
  }
  /// Tampers with a datagram that a host receives.
  void spoil(const path::Arrival& arrival);

 private:
  Kind kind_;
  std::uint64_t chances_left_;
  std::vector<std::byte> kept_;  // an earlier segment
};

}  // namespace fairlead::sim
