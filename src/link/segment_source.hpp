#pragma once
// Supplies the segments of a peer that may leave now, one after the other. Short messages leave in their order. Longer
// messages are cut into segments in their turn, each a range of a message's bytes.
//
// All segments of a train have one size, except the last. The end of a message is shorter. It waits while messages
// behind it have whole segments to give, and leaves as the last of the train. Otherwise most trains would end early.
// Where one segment fills a train, the ends of several messages make a train of their own.

#include <cstdint>

#include "link/link_context.hpp"

namespace fairlead::link {

class SegmentSource {
 public:
  explicit SegmentSource(LinkContext& context) : context_(context) {}

  /// Returns how many bytes the next train of longer messages may have. What needs two trains leaves in two halves: the
  /// receiver works on the first one while the second is sent.
  static std::uint32_t train_bytes(const Peer& peer, std::uint32_t bytes_max, std::uint32_t datagrams_max);
  /// Returns the next segment of short messages, at most `size_max` bytes. Null if none waits or may leave.
  Segment* take_queued(Peer& peer, Channel channel, std::uint32_t size_max);
  /// Cuts the next segment of a longer message for this train, which has `bytes_left` bytes left. `is_last`: the train
  /// ends with it. Null if none waits or may leave.
  Segment* cut_next(Peer& peer, const Train& train, bool is_last, std::uint32_t bytes_left);
  /// Returns whether two more segments of this size may leave on the data channel.
  bool is_open_for_two(const Peer& peer, std::uint32_t size) const;

 private:
  bool is_open_for(const Peer& peer, Channel channel, std::uint32_t size) const;
  static Message* choose(Peer& peer, const Train& train, bool is_last, Portion& portion);
  static Portion next_portion(const Peer& peer, const Message& message);
  Segment* cut(Peer& peer, Message& message, const Portion& portion);

  LinkContext& context_;
};

}  // namespace fairlead::link
