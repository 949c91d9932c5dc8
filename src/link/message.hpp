#pragma once
// A message sent by reference: the caller keeps its bytes, and segments point into them. It waits in its peer's queue
// until its last segment is cut, then until its last ACK. Progress is counted in segments, not bytes, since a message
// may be empty.

#include <cstdint>
#include <span>

#include <sys/uio.h>
#include <boost/intrusive/list.hpp>

#include "wire/record.hpp"

namespace fairlead::link {

using ListHook = boost::intrusive::list_member_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

struct Message {
  static constexpr std::uint32_t kNoSlot = wire::kNoSlot;

  ListHook hook;
  wire::Envelope envelope;
  std::span<const iovec> pieces;
  std::uint64_t size = 0;
  std::uint64_t cookie = 0;
  bool wants_outcome = true;
  bool is_ordered = false;
  bool is_void = false;  // taken back and ended; its remaining segments tell the peer so

  // Where the next segment begins.
  std::uint64_t bytes_cut = 0;
  std::uint32_t piece = 0;
  std::uint64_t piece_offset = 0;

  std::uint32_t passed_by = 0;  // segments of other messages sent while this message's end waited
  std::uint32_t segments_unacked = 0;
  std::uint32_t number = 0;      // on the wire, if chunked
  std::uint32_t slot = kNoSlot;  // the receiver's reassembly slot, if chunked

  bool is_cut() const { return bytes_cut == size; }
};

/// A run of a message's bytes, in at most Segment::kPiecesMax pieces.
struct Stretch {
  std::uint32_t bytes = 0;
  std::uint32_t pieces = 0;  // from the first to the last, empty ones included
};

/// What one segment takes of a message.
struct Portion {
  Stretch stretch;
  bool is_whole = false;   // the whole message
  std::uint32_t size = 0;  // of the datagram, in bytes
};

using MessageList = boost::intrusive::list<Message, boost::intrusive::member_hook<Message, ListHook, &Message::hook>,
                                           boost::intrusive::constant_time_size<false>>;

}  // namespace fairlead::link
