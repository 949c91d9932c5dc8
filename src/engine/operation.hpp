#pragma once
// A submitted operation while the engine owns its memory, and the placement of an incoming message in it.

#include <cstdint>
#include <span>

#include <sys/uio.h>

#include <fairlead/error.hpp>

#include "base/ensure.hpp"
#include "base/slab.hpp"
#include "base/time.hpp"
#include "engine/completion.hpp"
#include "engine/permit.hpp"
#include "link/link.hpp"

namespace fairlead::engine {

enum class OperationKind : std::uint8_t {
  receive,
  send,
  expose_readable,
  expose_writable,
  put,
  get,
  blank,  // a key that its owner got in advance; its exposure follows
  loan,
};

struct Operation {
  OperationKind kind = OperationKind::receive;
  Status status = Status::ok;  // the final status, known before it may be reported
  bool is_busy = false;        // exposure: taken by a transfer; receive: no further message is matched
  bool is_cancel_wanted = false;
  bool has_patience = false;       // cancelled; ends by force after the give-up time
  bool is_link_pending = false;    // the link still refers to the memory: an outcome follows
  bool is_answer_pending = false;  // put, get: the target has not answered yet
  bool is_in_chain = false;
  bool takes_loans = false;   // of a receive
  bool is_spare = false;      // receive: posted by the port itself
  bool is_published = false;  // exposure: local peers may access it directly
  bool is_withdrawn = false;  // cancelled while a local peer may have been using it
  bool is_used_up = false;    // used by one local peer while another may still access it
  bool is_to_repeat = false;  // put, get: came before its exposure; is requested again
  std::uint32_t port = 0;     // slot
  std::uint64_t cookie = 0;
  std::uint64_t length = 0;       // usable bytes of memory
  std::uint64_t length_done = 0;  // put, get, exposure: bytes transferred
  std::span<const iovec> memory;
  std::uint64_t key = 0;          // exposure, blank: its name; 0 once it is taken
  std::uint64_t asker = 0;        // exposure that is being read: the peer's name for its get
  std::uint64_t asked_key = 0;    // put, get: of the target, as the envelope has it
  base::Instant repeat_until{};   // put, get: set when it is repeated for the first time
  std::uint32_t repeats = 0;      // put, get: how often this program has repeated it
  link::Reference reference = 0;  // the message's place in the transport
  RemotePort other;
  link::PeerHandle peer;  // put, get: the peer that must answer

  // Receive: how much of the memory is assigned, and the messages arriving in it, in the order of their offsets.
  std::uint64_t fill = 0;
  std::uint64_t size_min = 0;
  std::uint32_t messages_left = 0;
  std::uint32_t first_placement = base::Slab<int>::kNone;
  std::uint32_t last_placement = base::Slab<int>::kNone;

  // Receive: links of the port's posted buffers. Put, get: links of the operations that wait for one peer.
  std::uint32_t next = base::Slab<int>::kNone;
  std::uint32_t previous = base::Slab<int>::kNone;

  /// Returns permission to write a message of `size` bytes at `offset`. The caller has checked the range.
  [[gnu::always_inline]] Permit permit(std::uint64_t offset, std::uint64_t size) const {
    ENSURE(offset <= length && size <= length - offset, "{} bytes permitted at {} of {}", size, offset, length);
    return {memory, offset, size};
  }
};

/// The destination of a message that arrives in several chunks. The link's target word names it by slot and generation.
struct Placement {
  enum class State : std::uint8_t { filling, complete, failed, abandoned } state = State::filling;
  Status status = Status::ok;   // the reason, if failed
  std::uint64_t operation = 0;  // name of the operation that owns the memory; none: the chunks are discarded
  std::uint64_t offset = 0;     // of the message in the operation's memory
  std::uint64_t size = 0;
  RemotePort source;
  std::uint32_t next = base::Slab<int>::kNone;  // next message of the same receive
};

/// Packs slot and generation into one word for cookies and targets. Never 0.
constexpr std::uint64_t pack_name(std::uint32_t slot, std::uint32_t generation) {
  return static_cast<std::uint64_t>(generation) << 32 | slot;
}
constexpr std::uint32_t slot_of(std::uint64_t name) {
  return static_cast<std::uint32_t>(name);
}
constexpr std::uint32_t generation_of(std::uint64_t name) {
  return static_cast<std::uint32_t>(name >> 32);
}

/// A doubly linked list of operations by slot. Appending and removing are O(1).
class OperationChain {
 public:
  std::uint32_t first() const { return first_; }
  bool is_empty() const { return first_ == base::Slab<int>::kNone; }

  void append(base::Slab<Operation>& operations, std::uint32_t slot) {
    Operation& added = operations[slot];
    added.previous = last_;
    added.next = base::Slab<int>::kNone;
    (last_ == base::Slab<int>::kNone ? first_ : operations[last_].next) = slot;
    last_ = slot;
    added.is_in_chain = true;
  }

  void remove(base::Slab<Operation>& operations, std::uint32_t slot) {
    Operation& removed = operations[slot];
    if (!removed.is_in_chain) return;
    (removed.previous == base::Slab<int>::kNone ? first_ : operations[removed.previous].next) = removed.next;
    (removed.next == base::Slab<int>::kNone ? last_ : operations[removed.next].previous) = removed.previous;
    removed.is_in_chain = false;
  }

 private:
  std::uint32_t first_ = base::Slab<int>::kNone;
  std::uint32_t last_ = base::Slab<int>::kNone;
};

}  // namespace fairlead::engine
