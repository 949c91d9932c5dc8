#pragma once
// The engine's part of a message header: the operation, the ports and the memory. The link does not read it. Every
// segment of a message carries it, so that the receiver can place whichever chunk arrives first (docs/wire.md).

#include <cstdint>

namespace fairlead::wire {

/// What the receiving engine does with a message. The values are those on the wire.
enum class Operation : std::uint8_t {
  message = 1,  // into posted buffers of a port; payload: the message. If cookie and flags ask for it, `told` answers
  put = 2,      // into exposed memory: key, offset; payload: the data. `done` answers
  get = 3,      // from exposed memory: key, offset, a = length; no payload. `answer` or `done` answers
  answer = 4,   // the data of a get; cookie names the initiator's operation
  done = 5,     // end of a put, or of a refused get: cookie, status, a = bytes

  // Queue pairs (docs/queue-pairs.md). Ports are queue pair numbers; the source's upper 8 bits are its incarnation. key
  // = sequence << 32 | rkey; offset = remote address. Flags: 1 immediate data (in cookie), 2 solicited, 4 fetch and
  // add, 8 acknowledges, 64 atomic write, 32 XRC, bits 8-15 of a datagram traffic class. With `acknowledges` a send or
  // write acknowledges the other direction's requests up to sequence `a`; the target's upper 8 bits are that side's
  // incarnation. With XRC status and bits 8-15 are a shared receive queue.
  pair_send = 6,
  pair_write = 7,
  pair_read = 8,    // a = length
  pair_atomic = 9,  // a = swap or addend, cookie = compare
  // for the sequence and all before it: status = verdict, flags = cause, bit 8: result (cookie, payload)
  pair_answer = 10,
  pair_datagram = 11,  // key = queue key

  carried_out = 12,  // a peer of this host has completed a put or get of the exposure `key` itself; a = bytes

  // Active messages. key = access of a request, otherwise the reply_access of the message answered; cookie names the
  // exchange. flags = a value of the interface; offset = into the segment. a = reply_access for an answer (requests and
  // replies). There status holds the head's length divided by 8, and bit 7: placed.
  active_request = 13,
  active_reply = 14,
  active_returned = 15,  // a request that was refused: status; no payload, not placed
  active_rejected = 16,  // a reply that was refused: status; no payload, not placed

  // Within a host: a message that lies in its sender's memory at `offset`; a = bytes, cookie names it.
  lent = 17,
  given_back = 18,  // the end of such a loan, by its cookie: status

  // The result of a message, by its cookie (within a host also without one: a = the line of its ring at which it
  // ended): status. Sent if the sender asked for it (MessageFlags::kConfirm); otherwise only if no receiver can take
  // the message.
  told = 19,
};

inline constexpr Operation kOperationLast = Operation::told;

/// Flags in the envelope of a message.
struct MessageFlags {
  static constexpr std::uint16_t kConfirm = 1;  // its sender waits for `told`
};

struct Envelope {
  Operation operation = Operation::message;
  std::uint8_t status = 0;        // fairlead::Status of `done`
  std::uint16_t flags = 0;        // meaning depends on the operation
  std::uint32_t source_port = 0;  // sender's port on its engine
  std::uint32_t target_port = 0;  // receiver's port
  std::uint64_t key = 0;          // match bits of exposed memory, xor the epoch of the engine that made them
  std::uint64_t cookie = 0;       // names the operation at the side that receives the answer
  std::uint64_t offset = 0;       // into exposed memory, in bytes
  std::uint64_t a = 0;            // meaning depends on the operation

  bool operator==(const Envelope&) const = default;
};

}  // namespace fairlead::wire
