#pragma once
// The engine's part of a message header: which operation, between which ports, on what. The link carries it unread in
// every segment of the message, so that whichever chunk arrives first can be placed (docs/wire.md).

#include <cstdint>

namespace fairlead::wire {

/// What the receiving engine does with a message. The order is the wire's.
enum class Operation : std::uint8_t {
  message = 1,  // to the posted buffers of a port; payload: the message
  put = 2,      // into exposed memory: key, offset; payload: the data. Answered by `done`
  get = 3,      // out of exposed memory: key, offset, a = length; no payload. Answered by `answer` or `done`
  answer = 4,   // the data of a get: cookie names the operation of the asker
  done = 5,     // end of a put or of a refused get: cookie, status, a = bytes

  // Active messages: key = access, or reply_access of the request; cookie names the exchange; flags = the face's word;
  // offset into the segment; a = length of the head, bit 16: placed, bits 32-63: reply_access.
  active_request = 13,
  active_reply = 14,
  active_returned = 15,  // a request that was not taken: status
  active_rejected = 16,  // a reply that was not taken: status
};

inline constexpr Operation kOperationLast = Operation::active_rejected;

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
