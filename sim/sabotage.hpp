#pragma once
// Faults planted on purpose, to prove that the simulator finds such faults. Each strikes once, at the so-manieth
// chance.

#include <cstdint>
#include <vector>

#include "path/path.hpp"

namespace fairlead::sim {

class Sabotage {
 public:
  enum class Kind : std::uint8_t {
    none,
    wrong_byte,        // a byte changes on the way, and the checksum with it
    repeated_message,  // a segment arrives again under the number of another one
    lost_event,        // an application is not told of an event
    repeated_event,    // it is told twice
    late_write,        // memory is written after its operation has ended
    lost_record,       // a process passes over a record that another of its machine wrote
    repeated_record,   // it reads the records of one pass twice
    changed_header,  // a segment gets the next one's sequence, and a checksum that fits: no harm to one that is sealed
    forgotten_header,   // the same, and sealing proves the payload only
    skipped_sequence,   // an engine that is replaced takes one more segment for received
    forgotten_arrival,  // it forgets one that came before its turn
    forgotten_answer,   // and what it owed to a peer
  };

  explicit Sabotage(Kind kind, std::uint64_t strikes_at = 20) : kind_(kind), chances_left_(strikes_at) {}

  bool is(Kind kind) const { return kind_ == kind; }
  /// True once, at its time.
  bool strikes(Kind kind) {
    if (kind_ != kind || chances_left_ == 0) return false;
    --chances_left_;
    return chances_left_ == 0;
  }
  /// Works on what a host collects.
  void spoil(const path::Arrival& arrival);

 private:
  Kind kind_;
  std::uint64_t chances_left_;
  std::vector<std::byte> kept_;  // an earlier segment
};

}  // namespace fairlead::sim
