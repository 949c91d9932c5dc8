#pragma once
// Acknowledgements in both directions. A received ACK frees segments, measures the round trip and reveals losses. For
// received segments this class records the ACK that is owed to the peer.
//
// Loss detection. A segment counts as lost when a later transmission has been acknowledged, and one of two limits is
// reached: the acknowledged one is packet_threshold transmissions later, or 9/8 of a round trip has passed since the
// segment left. On a path that reorders, reorder_window.hpp widens both limits. Transmissions are numbered (`order`),
// so a resent segment is judged by its last transmission.
//
// An ACK on a data segment reports on 64 segments only. Segments beyond that reach are judged by the last ACK that
// covered the whole window. If there are several holes, that ACK may be old.

#include <cstdint>

#include "base/time.hpp"
#include "link/link_context.hpp"
#include "wire/segment.hpp"

namespace fairlead::link {

/// When the ACK of a segment leaves, if no data carries it before: after LinkOptions::ack_after, or with this pass.
/// After the end of a long message with this pass, too; or in the next one, if this side answered the last such message
/// with a long one before more arrived. The next answer then carries the ACK. In a stream a pass is long, and the
/// sender would wait.
enum class AckUrgency : std::uint8_t { later, after_end, at_once };

class Acks {
 public:
  explicit Acks(LinkContext& context) : context_(context) {}

  /// Processes the ACK of a segment. Returns false if it acknowledges a sequence that was never sent; the caller then
  /// drops the whole segment.
  bool take(Peer& peer, const wire::Frame& frame, base::Instant now);
  /// Adds a round-trip sample from the timestamp that the segment echoes.
  void measure(Peer& peer, const wire::Header& header, base::Instant now);
  /// Queues every segment that counts as lost by now for retransmission.
  void find_losses(Peer& peer, base::Instant now);

  /// Records that a received segment has to be acknowledged. `urgency`: if nothing else asks for it sooner.
  void owe(Peer& peer, const wire::Frame& frame, base::Instant now, bool is_duplicate, AckUrgency urgency);
  /// Clears the debt after an ACK left on a segment.
  static void settle(Peer& peer);

 private:
  /// What is known while one ACK is processed.
  struct AckEvidence {
    base::Instant now;
    const wire::Header& header;
    std::uint64_t order_acked = 0;  // peer.order_acked before this ACK
  };
  static bool is_within_sent(const Peer& peer, const wire::Frame& frame);
  void on_acked(Peer& peer, Segment& segment, const AckEvidence& evidence);
  static void learn_order(Peer& peer, const Segment& segment, const AckEvidence& evidence);

  LinkContext& context_;
};

}  // namespace fairlead::link
