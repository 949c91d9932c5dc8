#pragma once
// The part of an engine's interface that the verbs face needs: regions, completion and notice streams, receive queues
// and queue pairs (docs/queue-pairs.md). A face gets it from Core::pairs(); like Core it may one day be answered by
// another process, so it takes and gives plain values, and what comes up is pulled from streams.
//
// Calls that take something away wait until nothing refers to it any more. Those who must not wait begin it, and ask
// whether it is over.
//
// Thread rules: any thread, but the consumer's side of one stream belongs to one thread at a time. Hot calls answer 0
// or a positive errno.

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

/// Posted receives, shared by any number of queue pairs.
struct ReceiveQueuePlan {
  std::uint32_t depth = 1;  // requests
  std::uint32_t sges = 1;   // of one request
  std::uint32_t domain = 0;
  std::uint32_t limit = 0;  // below it one notice
  NoticeStream* events = nullptr;
  std::uint64_t cookie = 0;
  // XRC: it has a number, and completions of its own; not 0:
  std::uint32_t xrc_domain = 0;
  CompletionStream* stream = nullptr;
};

struct ReceiveQueueFacts {
  std::uint32_t depth = 0, limit = 0, posted = 0;
  std::uint32_t xrc_number = 0;
};

/// XRC has queue pairs (of type rc, here) with one end: an initiator names a shared receive queue with each request,
/// and a target stands before those of its domain.
enum class PairEnd : std::uint8_t { both, initiator, target };

struct PairPlan {
  verbs::QpType type = verbs::QpType::rc;
  verbs::QpCapacity capacity;
  bool signals_all = false;
  std::uint32_t domain = 0;
  PairEnd end = PairEnd::both;
  std::uint32_t xrc_domain = 0;                // of a target
  CompletionStream* send_stream = nullptr;     // a target has none
  CompletionStream* receive_stream = nullptr;  // an initiator has none, a target that of the last request
  ReceiveQueueHandle shared_receives{};        // else it gets one of its own
  bool has_shared_receives = false;
  NoticeStream* events = nullptr;
  std::uint64_t cookie = 0;
};

struct OpenPair {
  PairHandle handle;
  std::uint32_t number = 0;
};

struct PairFacts {
  verbs::QpAttributes attributes;  // `state` as it is now
};

class PairCore {
 public:
  virtual ~PairCore() = default;

  /// By the index in a queue pair number.
  virtual PairAccount* accounts() = 0;

  /// Zeroed memory in whole pages that peers of this host can reach once it is registered; empty if there is none to be
  /// had of that kind.
  virtual std::span<std::byte> allocate(std::uint64_t bytes) = 0;
  virtual void free(std::span<std::byte> memory) = 0;

  /// Its key. no_memory at the bound; not_supported: memory that the engine cannot reach.
  virtual Result<std::uint32_t> add_region(const RegionPlan& plan) = 0;
  /// `stale` if the key names nothing, `in_use` while windows are bound to it. The key is dead at once; returns when
  /// nothing reads the memory any more, which the give-up time bounds.
  virtual Status remove_region(std::uint32_t key) = 0;

  /// The key stays and names something else at once; returns as remove_region() does, and fails likewise, or as
  /// add_region().
  virtual Result<> change_region(std::uint32_t key, const RegionPlan& plan) = 0;

  /// Its key. no_memory at the bound.
  virtual Result<std::uint32_t> add_window(verbs::WindowType type, std::uint32_t domain) = 0;
  /// By any of its keys.
  virtual void remove_window(std::uint32_t key) = 0;
  virtual void unbind_windows(std::uint32_t region) = 0;

  virtual Result<NoticeStream*> open_notices() = 0;
  virtual void close_notices(NoticeStream* stream) = 0;
  /// A face's own news among the engine's.
  virtual void tell(NoticeStream* stream, const Notice& notice) = 0;

  virtual Result<CompletionStream*> open_completions(const CompletionStream::Plan& plan) = 0;
  /// `again`, and nothing changed, while queue pairs feed it.
  virtual Status close_completions(CompletionStream* stream) = 0;
  virtual void arm(CompletionStream* stream, CompletionStream::Armed armed) = 0;
  /// This one is told of its completions from now on.
  virtual void listen(CompletionStream* stream, NoticeStream* channel) = 0;

  /// no_memory at the bound.
  virtual Result<ReceiveQueueHandle> open_receive_queue(const ReceiveQueuePlan& plan) = 0;
  /// `again`, and nothing changed, while queue pairs use it.
  virtual Status close_receive_queue(ReceiveQueueHandle queue) = 0;
  /// `invalid` if more are posted than `depth`.
  virtual Status change_receive_queue(ReceiveQueueHandle queue, std::uint32_t depth, std::uint32_t limit) = 0;
  virtual ReceiveQueueFacts receive_queue_facts(ReceiveQueueHandle queue) = 0;
  virtual int post_to_receive_queue(ReceiveQueueHandle queue, std::span<const verbs::ReceiveRequest> requests,
                                    std::size_t& taken) = 0;

  /// no_memory at the bound; not_available: the engine has no numbers for queue pairs.
  virtual Result<OpenPair> open_pair(const PairPlan& plan) = 0;
  /// Returns when nothing of it is in flight any more, which the give-up time bounds.
  virtual void close_pair(PairHandle pair) = 0;
  /// To another state, or new attributes in the same: `bad_state`, and nothing changed, if it is not in `from` any
  /// more. The transition's legality is the face's affair. A reset waits as close_pair() does.
  virtual Status change_pair(PairHandle pair, verbs::QpState from, const verbs::QpAttributes& attributes) = 0;
  virtual PairFacts pair_facts(PairHandle pair) = 0;
  /// Multicast (qp/group_table.hpp).
  virtual Result<> attach_group(PairHandle pair, const verbs::Gid& group, std::uint16_t lid) = 0;
  virtual Status detach_group(PairHandle pair, const verbs::Gid& group) = 0;
  virtual bool is_in_group(PairHandle pair) = 0;
  virtual int post_send(PairHandle pair, std::span<const verbs::SendRequest> requests, std::size_t& taken) = 0;
  /// All of them, or none.
  virtual int post_send_all(PairHandle pair, std::span<const verbs::SendRequest> requests) = 0;
  virtual int post_receive(PairHandle pair, std::span<const verbs::ReceiveRequest> requests, std::size_t& taken) = 0;

  // The same without waiting; by default they wait all the same.
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
  /// Makes no progress itself. Not once more after it was true.
  virtual bool is_over(Withdrawal&) { return true; }

  virtual bool progress() = 0;
  /// Before the process ends: what peers are owed leaves, bounded in time, and they are told that we are gone.
  virtual void linger() = 0;
};

}  // namespace fairlead::qp
