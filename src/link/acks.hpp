#pragma once
// What an ACK does: it frees segments, measures the round trip and shows what was lost. And what ACKs we owe.
//
// A segment is lost when one transmitted later has arrived and either packet_threshold later ones have been transmitted
// before that one, or 9/8 of a round trip has passed since it left; reorder_window.hpp widens both on a path that
// reorders. Transmissions are counted by `order`, so a resent segment is judged by its last transmission.
//
// An ACK on a data segment tells of 64 segments only. What lies beyond is judged by the last ACK that told of all: with
// several holes it may have arrived long ago.

#include <cstdint>

#include "base/time.hpp"
#include "link/link_context.hpp"
#include "wire/segment.hpp"

namespace fairlead::link {

class Acks {
 public:
  explicit Acks(LinkContext& context) : context_(context) {}

  /// False if it acknowledges what was never sent: then nothing of the segment counts.
  bool take(Peer& peer, const wire::Frame& frame, base::Instant now);
  /// The round trip, by the echo of a segment.
  void measure(Peer& peer, const wire::Header& header, base::Instant now);
  /// Sends again what counts as lost by now.
  void find_losses(Peer& peer, base::Instant now);

  /// A segment came that is to be acknowledged.
  void owe(Peer& peer, const wire::Frame& frame, base::Instant now, bool is_duplicate, bool is_at_once);
  /// An ACK went out on a segment.
  static void settle(Peer& peer);

 private:
  /// What is known while one ACK is taken.
  struct AckEvidence {
    base::Instant now;
    const wire::Header& header;
    std::uint64_t order_acked = 0;  // before this ACK
  };
  static bool is_within_sent(const Peer& peer, const wire::Frame& frame);
  void on_acked(Peer& peer, Segment& segment, const AckEvidence& evidence);
  static void learn_order(Peer& peer, const Segment& segment, const AckEvidence& evidence);

  LinkContext& context_;
};

}  // namespace fairlead::link
