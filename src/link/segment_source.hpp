#pragma once
// The segments of a peer that may go now, one after the other: short messages in their order; longer messages become
// segments as their turn comes, each a stretch of a message's bytes.
//
// All segments of a train but the last have one size, and the end of a message is shorter. So it waits while messages
// behind it have whole segments to give, and is the last of this train: else most trains would end early. Where one
// segment is a train by itself, the ends of several messages make one.

#include <cstdint>

#include "link/link_context.hpp"

namespace fairlead::link {

class SegmentSource {
 public:
  explicit SegmentSource(LinkContext& context) : context_(context) {}

  /// Of short messages, at most so long. Null if none waits or may go.
  Segment* take_queued(Peer& peer, Channel channel, std::uint32_t size_max);
  /// Of a longer message, for this train, which has so many bytes left; `is_last`: the train ends with it. Null if none
  /// waits or may go.
  Segment* cut_next(Peer& peer, const Train& train, bool is_last, std::uint32_t bytes_left);
  /// Whether two more of this size may go on the data channel.
  bool is_open_for_two(const Peer& peer, std::uint32_t size) const;

 private:
  bool is_open_for(const Peer& peer, Channel channel, std::uint32_t size) const;
  static Message* choose(Peer& peer, const Train& train, bool is_last, Portion& portion);
  static Portion next_portion(const Peer& peer, const Message& message);
  Segment* cut(Peer& peer, Message& message, const Portion& portion);

  LinkContext& context_;
};

}  // namespace fairlead::link
