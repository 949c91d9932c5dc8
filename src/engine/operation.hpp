#pragma once
// A submitted operation while the engine owns its memory, and the place of one incoming message in it.

#include <cstdint>
#include <span>

#include <sys/uio.h>

#include <fairlead/error.hpp>

#include "base/ensure.hpp"
#include "base/slab.hpp"
#include "engine/completion.hpp"
#include "engine/permit.hpp"
#include "link/link.hpp"

namespace fairlead::engine {

enum class OperationKind : std::uint8_t { receive, send, expose_readable, expose_writable, put, get, loan };

struct Operation {
  OperationKind kind = OperationKind::receive;
  Status status = Status::ok;  // what is known of the end before it may be told
  bool is_busy = false;        // exposure: taken by a transfer; receive: no further message is matched
  bool is_cancel_wanted = false;
  bool has_patience = false;       // cancelled, and ends by force after the give-up time
  bool is_link_pending = false;    // the link still refers to the memory: an outcome will come
  bool is_answer_pending = false;  // put, get: the target has not answered yet
  bool is_in_chain = false;
  bool takes_loans = false;   // receive
  bool is_spare = false;      // receive: the port has posted it by itself
  bool is_published = false;  // exposure: peers of this host may use it by themselves
  bool is_withdrawn = false;  // cancelled while one of them may have been at it
  bool is_used_up = false;    // by one of them; another one is still looking at it
  std::uint32_t port = 0;     // slot
  std::uint64_t cookie = 0;
  std::uint64_t length = 0;       // usable bytes of memory
  std::uint64_t length_done = 0;  // put, get, exposure: bytes transferred
  std::span<const iovec> memory;
  std::uint64_t key = 0;          // exposure: what names it; 0 once it is taken
  std::uint64_t asker = 0;        // exposure that is being read: the peer's name of its get
  link::Reference reference = 0;  // where the transport keeps its message
  RemotePort other;
  link::PeerHandle peer;  // put, get: who has to answer

  // receive: how far the memory is given away, and the messages on their way into it, in the order of their offsets
  std::uint64_t fill = 0;
  std::uint64_t size_min = 0;
  std::uint32_t messages_left = 0;
  std::uint32_t first_placement = base::Slab<int>::kNone;
  std::uint32_t last_placement = base::Slab<int>::kNone;

  // receive: the port's posted buffers; put, get: what waits for one peer
  std::uint32_t next = base::Slab<int>::kNone;
  std::uint32_t previous = base::Slab<int>::kNone;

  /// To write a message of `size` bytes there, which may be.
  Permit permit(std::uint64_t offset, std::uint64_t size) const {
    ENSURE(offset <= length && size <= length - offset, "{} bytes permitted at {} of {}", size, offset, length);
    return {memory, offset, size};
  }
};

/// Where a message that comes in several chunks goes. Named in the link's target word by slot and generation.
struct Placement {
  enum class State : std::uint8_t { filling, complete, failed, abandoned } state = State::filling;
  Status status = Status::ok;   // failed: why
  std::uint64_t operation = 0;  // name of the operation whose memory it is; none: the chunks are thrown away
  std::uint64_t offset = 0;     // of the message in the operation's memory
  std::uint64_t size = 0;
  RemotePort source;
  std::uint32_t next = base::Slab<int>::kNone;  // next message of the same receive
};

/// Slot and generation in one word, as cookies and targets carry them. Never 0.
constexpr std::uint64_t pack_name(std::uint32_t slot, std::uint32_t generation) {
  return static_cast<std::uint64_t>(generation) << 32 | slot;
}
constexpr std::uint32_t slot_of(std::uint64_t name) {
  return static_cast<std::uint32_t>(name);
}
constexpr std::uint32_t generation_of(std::uint64_t name) {
  return static_cast<std::uint32_t>(name >> 32);
}

/// A doubly linked list of operations by slot: O(1) to append and to take out from the middle.
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
