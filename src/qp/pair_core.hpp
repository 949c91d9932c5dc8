#pragma once
// The part of an engine's interface for queue pairs: regions, completion and notice streams, receive queues and queue
// pairs (docs/queue-pairs.md). An API gets it from Core::pairs(). The engine may be in another process
// (host/host_pairs.hpp), so calls take and return plain values, and events are pulled from streams.
//
// Calls that withdraw something return when nothing refers to it any more. A caller that must not wait uses the begin_
// variants, and polls is_over().
//
// Thread rules: any thread may call. The consumer's side of a stream belongs to one thread at a time. Posting calls
// return 0 or a positive errno.

#include <cstddef>
#include <cstdint>
#include <span>

#include <fairlead/error.hpp>
#include <fairlead/verbs/queue_pair.hpp>

#include "base/socket_address.hpp"
#include "qp/completion_stream.hpp"
#include "qp/notice_stream.hpp"
#include "qp/pair_handle.hpp"
#include "qp/region_table.hpp"
#include "qp/withdrawal.hpp"

namespace fairlead::qp {

struct ReceiveQueueHandle {
  std::uint32_t slot = ~0U;
  std::uint32_t generation = 0;
  bool operator==(const ReceiveQueueHandle&) const = default;
};

/// The properties of a receive queue that any number of queue pairs share.
struct ReceiveQueuePlan {
  std::uint32_t depth = 1;  // work requests
  std::uint32_t sges = 1;   // for each request
  std::uint32_t domain = 0;
  std::uint32_t limit = 0;  // one notice when fewer are posted; 0: none
  NoticeStream* events = nullptr;
  std::uint64_t cookie = 0;
  // XRC, if the domain is not 0: the queue gets a number, and has its own completion queue.
  std::uint32_t xrc_domain = 0;
  CompletionStream* stream = nullptr;
};

struct ReceiveQueueFacts {
  std::uint32_t depth = 0, limit = 0, posted = 0;
  std::uint32_t xrc_number = 0;
};

/// XRC uses queue pairs of type rc with one half. An initiator names a shared receive queue with each request. A target
/// serves the shared receive queues of its domain.
enum class PairEnd : std::uint8_t { both, initiator, target };

struct PairPlan {
  verbs::QpType type = verbs::QpType::rc;
  verbs::QpCapacity capacity;
  bool signals_all = false;
  std::uint32_t domain = 0;
  PairEnd end = PairEnd::both;
  std::uint32_t xrc_domain = 0;                // of a target
  CompletionStream* send_stream = nullptr;     // a target has none
  CompletionStream* receive_stream = nullptr;  // an initiator has none; a target: of its last request
  ReceiveQueueHandle shared_receives{};        // if has_shared_receives is false, it gets its own queue
  bool has_shared_receives = false;
  NoticeStream* events = nullptr;
  std::uint64_t cookie = 0;
};

struct OpenPair {
  PairHandle handle;
  std::uint32_t number = 0;
};

struct PairFacts {
  verbs::QpAttributes attributes;  // with the current state
  bool is_sending = false;         // sends are not complete
};

class PairCore {
 public:
  virtual ~PairCore() = default;

  /// Array; the index is the lower part of a queue pair number.
  virtual PairAccount* accounts() = 0;

  /// Returns zeroed memory, in whole pages, that local peers can access directly once it is registered. Returns an
  /// empty span if there is none.
  virtual std::span<std::byte> allocate(std::uint64_t bytes) = 0;
  virtual void free(std::span<std::byte> memory) = 0;

  /// Registers memory and returns its key. Errors: no_memory at the limit; not_supported if the engine cannot access
  /// the memory.
  virtual Result<std::uint32_t> add_region(const RegionPlan& plan) = 0;
  /// Deregisters memory: the key is invalid at once. Returns when nothing accesses the memory any more; the give-up
  /// time limits this. Returns `stale` if the key names nothing, `in_use` while windows are bound to it.
  virtual Status remove_region(std::uint32_t key) = 0;

  /// Changes at once what the key names, then waits like remove_region(). Errors are those of remove_region() and
  /// add_region(), and `again` if messages refer to the present memory and to that before an earlier change.
  virtual Result<> change_region(std::uint32_t key, const RegionPlan& plan) = 0;

  /// Allocates a memory window and returns its key; no_memory at the limit.
  virtual Result<std::uint32_t> add_window(verbs::WindowType type, std::uint32_t domain) = 0;
  /// `key`: any key of the window.
  virtual void remove_window(std::uint32_t key) = 0;
  virtual void unbind_windows(std::uint32_t region) = 0;

  virtual Result<NoticeStream*> open_notices() = 0;
  virtual void close_notices(NoticeStream* stream) = 0;
  /// Adds an API's own notice to those of the engine.
  virtual void tell(NoticeStream* stream, const Notice& notice) = 0;

  virtual Result<CompletionStream*> open_completions(const CompletionStream::Plan& plan) = 0;
  /// `again`, and nothing changed, while queue pairs feed it.
  virtual Status close_completions(CompletionStream* stream) = 0;
  virtual void arm(CompletionStream* stream, CompletionStream::Armed armed) = 0;
  /// Changes the channel that gets the notices of a completion queue.
  virtual void listen(CompletionStream* stream, NoticeStream* channel) = 0;

  /// no_memory at the limit.
  virtual Result<ReceiveQueueHandle> open_receive_queue(const ReceiveQueuePlan& plan) = 0;
  /// `again`, and nothing changed, while queue pairs use it.
  virtual Status close_receive_queue(ReceiveQueueHandle queue) = 0;
  /// Returns `invalid` if more than `depth` are posted, or `depth` is 0.
  virtual Status change_receive_queue(ReceiveQueueHandle queue, std::uint32_t depth, std::uint32_t limit) = 0;
  virtual ReceiveQueueFacts receive_queue_facts(ReceiveQueueHandle queue) = 0;
  virtual int post_to_receive_queue(ReceiveQueueHandle queue, std::span<const verbs::ReceiveRequest> requests,
                                    std::size_t& taken) = 0;

  /// no_memory at the limit; not_available if the engine's port gives it no queue pair numbers.
  virtual Result<OpenPair> open_pair(const PairPlan& plan) = 0;
  /// Returns when no message of the queue pair is in flight any more; the give-up time limits this.
  virtual void close_pair(PairHandle pair) = 0;
  /// Changes the state, or the attributes in the same state. Returns `bad_state`, and changes nothing, if the queue
  /// pair is not in state `from` any more. The API checks that the transition is legal. A reset waits like
  /// close_pair(). A change to ERR or one that takes a remote right away waits only for local peers that are accessing
  /// memory.
  virtual Status change_pair(PairHandle pair, verbs::QpState from, const verbs::QpAttributes& attributes) = 0;
  virtual PairFacts pair_facts(PairHandle pair) = 0;
  /// Multicast (qp/group_table.hpp).
  virtual Result<> attach_group(PairHandle pair, const verbs::Gid& group, std::uint16_t lid) = 0;
  virtual Status detach_group(PairHandle pair, const verbs::Gid& group) = 0;
  virtual bool is_in_group(PairHandle pair) = 0;
  virtual int post_send(PairHandle pair, std::span<const verbs::SendRequest> requests, std::size_t& taken) = 0;
  /// Posts all requests, or none.
  virtual int post_send_all(PairHandle pair, std::span<const verbs::SendRequest> requests) = 0;
  virtual int post_receive(PairHandle pair, std::span<const verbs::ReceiveRequest> requests, std::size_t& taken) = 0;

  // The same without waiting. The default implementations wait.
  virtual Withdrawal begin_close_pair(PairHandle pair) {
    close_pair(pair);
    return {};
  }
  virtual Status begin_change_pair(PairHandle pair, verbs::QpState from, const verbs::QpAttributes& attributes,
                                   Withdrawal&) {
    return change_pair(pair, from, attributes);
  }
  virtual Status begin_remove_region(std::uint32_t key, Withdrawal&) { return remove_region(key); }
  virtual Result<> begin_change_region(std::uint32_t key, const RegionPlan& plan, Withdrawal&) {
    return change_region(key, plan);
  }
  /// Returns whether the withdrawal is complete. It makes no progress itself, and must not be called again after it
  /// returned true.
  virtual bool is_over(Withdrawal&) { return true; }

  virtual bool progress() = 0;
  /// Called before the process ends: sends what peers are owed, for a limited time, and takes leave of peers.
  virtual void linger() = 0;
};

}  // namespace fairlead::qp
