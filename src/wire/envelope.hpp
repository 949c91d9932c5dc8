#pragma once
// The engine's part of a message header: which operation, between which ports, on what. The link carries it unread in
// every segment of the message, so that whichever chunk arrives first can be placed (docs/wire.md).

#include <cstdint>

namespace fairlead::wire {

/// What the receiving engine does with a message. The order is the wire's.
enum class Operation : std::uint8_t {
  message = 1,  // to the posted buffers of a port; payload: the message. Cookie, if it is not 0, and flags: `told`
  put = 2,      // into exposed memory: key, offset; payload: the data. Answered by `done`
  get = 3,      // out of exposed memory: key, offset, a = length; no payload. Answered by `answer` or `done`
  answer = 4,   // the data of a get: cookie names the operation of the asker
  done = 5,     // end of a put or of a refused get: cookie, status, a = bytes

  // Queue pairs (docs/queue-pairs.md). Ports are queue pair numbers, the source's upper 8 bits its life; key = sequence
  // << 32 | rkey; offset = remote address; flags: 1 immediate data (in cookie), 2 solicited, 4 fetch and add, 8
  // acknowledges (send and write: the requests of the other direction up to sequence `a`; the target's upper 8 bits are
  // its life), bits 8-15 of a datagram traffic class. 64 atomic write, 32 XRC: status and bits 8-15 are a shared
  // receive queue.
  pair_send = 6,
  pair_write = 7,
  pair_read = 8,     // a = length
  pair_atomic = 9,   // a = swap or addend, cookie = compare
  pair_answer = 10,  // of sequence and all before it: status = verdict, flags = cause, bit 8: result (cookie, payload)
  pair_datagram = 11,  // key = queue key

  carried_out = 12,  // by a peer of the same host: a put or get of the exposure `key`; a = bytes

  // Active messages: key = access of a request, else the reply_access of what is answered; cookie names the exchange;
  // flags = the face's word; offset into the segment; a = reply_access of what may be answered (requests and replies),
  // and in the place of their status the length of the head in eights, bit 7: placed.
  active_request = 13,
  active_reply = 14,
  active_returned = 15,  // a request that was not taken: status; no payload, not placed
  active_rejected = 16,  // a reply that was not taken: status; no payload, not placed

  // Inside a host: a message that lies in its sender's memory, at `offset`, a = bytes; cookie names it.
  lent = 17,
  given_back = 18,  // that message, by its cookie: status

  // What became of a message, by its cookie (inside a host also without: a = the line of its ring where it ended):
  // status. If it was asked for (MessageFlags::kConfirm); else only if nobody can take it.
  told = 19,
};

inline constexpr Operation kOperationLast = Operation::told;

/// In the envelope of a message.
struct MessageFlags {
  static constexpr std::uint16_t kConfirm = 1;  // its sender waits for `told`
};

struct Envelope {
  Operation operation = Operation::message;
  std::uint8_t status = 0;        // fairlead::Status of `done`
  std::uint16_t flags = 0;        // operation's own
  std::uint32_t source_port = 0;  // sender's port on its engine
  std::uint32_t target_port = 0;  // receiver's port
  std::uint64_t key = 0;          // match bits of exposed memory, xor the epoch of the engine that made them
  std::uint64_t cookie = 0;       // names the operation at the side that is to be answered
  std::uint64_t offset = 0;       // into exposed memory, in bytes
  std::uint64_t a = 0;            // operation's own

  bool operator==(const Envelope&) const = default;
};

}  // namespace fairlead::wire
