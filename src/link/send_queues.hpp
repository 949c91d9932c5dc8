#pragma once
// Messages that wait to be sent to a peer: short ones are written into a segment at once, where they stay until their
// ACK; longer ones are queued by reference and cut into segments when their turn comes (segment_source.hpp).
//
// They can be taken back. A short one only before it is sent: it is a copy, so nobody has to wait for it. A long one
// always: its bytes are the caller's, who wants them back whatever the peer does. The segments that it is cut into have
// their sequences, and what is behind them must not be held up. So they stay in the window without their bytes; where
// one is sent again, a void one goes in its place. The peer throws away what it has of the message, unless it has all.
// Where not all was cut, a void segment more says so.

#include <cstdint>

#include "link/link_context.hpp"

namespace fairlead::link {

class SendQueues {
 public:
  explicit SendQueues(LinkContext& context) : context_(context) {}

  /// What is needed until one more message ends, so that nothing can be missing then.
  bool has_memory_for(Peer& peer);
  /// ok, again, invalid; as Link::submit().
  Status add(Peer& peer, const Outgoing& message, Reference& reference);
  /// As Link::cancel().
  bool cancel(Peer& peer, Reference reference, std::uint64_t cookie);
  /// All that waits or is under way ends with this status.
  void abandon(Peer& peer, Status status);
  /// As Link::is_eager().
  bool is_eager(const Peer& peer) const;

 private:
  Status embed(Peer& peer, const Outgoing& message, Reference& reference);
  Status refer(Peer& peer, const Outgoing& message, Reference& reference);
  std::uint32_t block_size_max(const Peer& peer) const;
  Segment* block_with_space(Peer& peer, Channel channel, std::uint32_t bytes, std::uint32_t ordered_before);
  bool cancel_embedded(Peer& peer, Segment& segment, std::uint64_t cookie);

  LinkContext& context_;
};

}  // namespace fairlead::link
