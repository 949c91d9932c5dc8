#pragma once
// Messages that wait to be sent to a peer. A short message is written into a segment at submission, and stays there
// until its ACK. A longer message is queued by reference, and cut into segments in its turn (segment_source.hpp).
//
// The caller can take messages back. A short message is a copy, and can be taken back only before it is sent. A long
// message can always be taken back, since its bytes belong to the caller. Its segments have sequences already, and must
// not hold up those behind them. So they stay in the window without their bytes; if one has to be resent, a void
// segment goes instead. If a part was not cut yet, one more void segment tells the peer. The peer drops what it has of
// the message, unless it has all.

#include <cstdint>

#include "link/link_context.hpp"

namespace fairlead::link {

class SendQueues {
 public:
  explicit SendQueues(LinkContext& context) : context_(context) {}

  /// Reserves the memory that is needed until one more message ends. Returns false if there is none.
  bool has_memory_for(Peer& peer);
  /// Queues a message. Returns ok, again or invalid, as Link::submit().
  Status add(Peer& peer, const Outgoing& message, Reference& reference);
  /// As Link::cancel().
  bool cancel(Peer& peer, Reference reference, std::uint64_t cookie);
  /// As Link::recall().
  bool recall(Peer& peer, Reference reference, std::uint64_t cookie);
  /// As Link::is_owing(), for long messages.
  static bool is_owing_long(const Peer& peer);
  /// Ends everything that waits or is in flight with this status.
  void abandon(Peer& peer, Status status);
  /// Removes a short message from a segment that was not sent yet.
  void take_out(Segment& segment, std::uint32_t index);
  /// As Link::is_eager().
  bool is_eager(const Peer& peer) const;

 private:
  Status embed(Peer& peer, const Outgoing& message, Reference& reference);
  Status refer(Peer& peer, const Outgoing& message, Reference& reference);
  std::uint32_t block_size_max(const Peer& peer) const;
  Segment* block_with_space(Peer& peer, Channel channel, std::uint32_t bytes, std::uint32_t ordered_before);
  bool cancel_embedded(const Peer& peer, Segment& segment, std::uint64_t cookie);

  LinkContext& context_;
};

}  // namespace fairlead::link
