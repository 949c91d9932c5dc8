#pragma once
// The queue pairs that an application has at the host engine: what it posts and asks for, checked and passed on to an
// engine, and what becomes of it, passed back.
//
// As in application.hpp nothing is believed that is read from the shared memory. All queue pairs of the application
// feed one completion stream of the engine; which queue of its own a completion belongs to the application knows. The
// stream has room for all that can be posted, so that it overruns only if the application posts more.
//
// What takes something away waits for what is in flight: such a call is answered when that is over, and meanwhile
// others are served.

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/foreign_descriptor.hpp"
#include "host/joined_memory.hpp"
#include "host/one_segment.hpp"
#include "host/pair_domains.hpp"
#include "host/pair_inbox.hpp"
#include "host/pair_layout.hpp"
#include "host/pair_posts.hpp"
#include "host/quota.hpp"
#include "qp/pair_core.hpp"
#include "queue/producer.hpp"
#include "shm/memory.hpp"
#include "shm/socket.hpp"

namespace fairlead::host {

/// What all applications of a host engine share, one after the other.
struct PairTools {
  DomainNumbers domains;
  PairPosts posts;
};

/// What an application shares for them.
struct PairMemory {
  shm::Memory rings, regions;
  base::ForeignDescriptor file;  // of the regions
  std::uint64_t bytes = 0;       // likewise
};

class ApplicationPairs {
 public:
  // A turn lasts for so many requests, or so many bytes that they name; and a call ends it.
  static constexpr std::uint32_t kRequestsInTurn = 64;
  static constexpr std::uint64_t kBytesInTurn = 1 << 20;
  static constexpr std::size_t kEndingsMax = 2 * kPairsMax;

  /// The memory is the application's.
  static Result<std::unique_ptr<ApplicationPairs>> open(qp::PairCore& core, PairTools& tools, PairMemory memory,
                                                        const Quota& quota);

  const shm::Socket& socket() const noexcept { return socket_; }
  void connect(shm::Socket socket) { socket_ = std::move(socket); }
  /// Becomes readable when the engine has something while it is parked.
  int descriptor() const noexcept { return notices_->descriptor(); }
  std::uint32_t count() const noexcept { return static_cast<std::uint32_t>(pairs_.size()); }

  /// Those of one turn. True if there was anything.
  bool take_requests();
  /// True if there was anything.
  bool give_events();
  /// Whether requests were served, or calls answered, since this was asked last.
  bool has_answered() noexcept { return std::exchange(has_answered_, false); }
  /// Before the host engine sleeps: false if there is something to do.
  bool park();

  /// The application has gone, or has to go.
  void leave();
  bool is_gone() const noexcept { return is_gone_; }
  /// Why it has to go; empty if it need not.
  const std::string& fault() const noexcept { return fault_; }

 private:
  // What the engine's notices are of.
  static constexpr std::uint64_t kStreamCookie = ~0ULL, kQueueCookie = 1ULL << 32;

  struct OwnPair {
    qp::PairHandle handle;
    verbs::QpType type = verbs::QpType::rc;
    std::uint32_t incarnation = 0;  // as the application calls it
    std::uint32_t domain = 0;       // likewise
    std::optional<std::uint32_t> queue;
    std::uint64_t bytes = 0;
    std::uint32_t completions = 0;  // that may wait
    std::uint32_t cookie = 0;       // in the engine's notices
    bool is_ending = false;
    bool is_resetting = false;  // until then it stays as it is: what is in flight ends
  };
  struct OwnQueue {
    qp::ReceiveQueueHandle handle;
    std::uint32_t generation = 0;
    std::uint32_t domain = 0;
    std::uint32_t posted = 0;  // ever
    std::uint32_t depth = 0, pieces = 0;
    std::uint32_t users = 0;
    bool is_open = false, was_taken_from = false;
  };
  struct OwnRegion {
    std::uint32_t domain = 0;  // as the application calls it
    JoinedMemory memory;       // if it is not of one piece
    std::uint32_t pieces = 0;  // of that ...
    std::uint64_t bytes = 0;   // ... and of address space
  };
  /// A call that waits for what is in flight.
  struct Ending {
    PairCall::Kind kind;
    PairCall call;
    std::uint16_t slot = 0;
    qp::Withdrawal withdrawal;
    OwnRegion region;  // as it was
  };
  /// A call, and what follows it.
  struct TakenCall {
    PairCall call;
    std::span<const MemoryPiece> pieces;
  };

  ApplicationPairs(qp::PairCore& core, PairTools& tools, PairMemory memory, PairInbox inbox, const Quota& quota)
      : core_(core),
        tools_(tools),
        quota_(quota),
        memory_(std::move(memory)),
        inbox_(std::move(inbox)),
        segment_({memory_.rings.head() + PairLayout::events(), PairLayout::events_bytes()}),
        domains_(tools.domains) {}

  PairPage& page() const noexcept { return *reinterpret_cast<PairPage*>(memory_.rings.head()); }
  void blame(std::string_view why);
  OwnPair* find(std::uint32_t object, std::uint32_t generation);
  OwnQueue* find_queue(std::uint32_t object, std::uint32_t generation);

  // Posts.
  void take(const TakenRequest& taken);
  void take_post(const TakenRequest& taken);

  // Calls.
  void take_call(const TakenRequest& taken);
  void carry_out(PairCall::Kind kind, const TakenCall& taken, std::uint16_t slot);
  Result<PairAnswer> open_pair(const PairCall& call);
  Result<PairAnswer> open_queue(const PairCall& call);
  Result<PairAnswer> change_queue(const PairCall& call);
  Result<PairAnswer> close_queue(const PairCall& call);
  Result<PairAnswer> queue_facts(const PairCall& call);
  Result<PairAnswer> pair_facts(const PairCall& call);
  Result<PairAnswer> add_region(const TakenCall& taken);
  Result<PairAnswer> add_window(const PairCall& call);
  Result<PairAnswer> remove_window(const PairCall& call);
  Result<PairAnswer> unbind_windows(const PairCall& call);
  Result<qp::Withdrawal> begin(PairCall::Kind kind, const TakenCall& taken, OwnRegion& region);
  Result<qp::Withdrawal> begin_change_pair(const PairCall& call);
  Result<qp::Withdrawal> begin_fail_pair(const PairCall& call);
  Result<qp::Withdrawal> begin_change_region(const TakenCall& taken, OwnRegion& region);
  Result<qp::Withdrawal> begin_remove_region(const PairCall& call, OwnRegion& region);
  Result<qp::RegionPlan> plan_of(const TakenCall& taken, OwnRegion& region) const;
  bool end_endings();
  void finish(const Ending& ending);
  void count_joined(const OwnRegion& region);
  void answer(std::uint16_t slot, std::uint64_t number, const Result<PairAnswer>& with);
  bool has_room_for(std::uint64_t completions) const;

  // Events.
  std::uint32_t take_notices(std::span<qp::Notice> to);
  bool give_completions();
  void give_notice(const qp::Notice& notice);
  void give(const PairNews& news);
  void show_taken(std::uint32_t slot);
  void end_what_is_left();

  qp::PairCore& core_;
  PairTools& tools_;
  const Quota quota_;
  PairMemory memory_;
  PairInbox inbox_;
  OneSegment segment_;
  std::optional<queue::Producer> events_;
  shm::Socket socket_;
  qp::PairAccount* accounts_ = nullptr;
  qp::NoticeStream* notices_ = nullptr;
  qp::CompletionStream* stream_ = nullptr;

  PairDomains domains_;
  std::unordered_map<std::uint32_t, OwnPair> pairs_;  // by the index in their numbers
  std::unordered_map<std::uint32_t, std::uint32_t> pairs_by_cookie_;
  std::deque<OwnQueue> queues_;
  std::unordered_map<std::uint32_t, OwnRegion> regions_;      // by key
  std::unordered_map<std::uint32_t, std::uint32_t> windows_;  // domain by key
  std::uint32_t joined_pieces_ = 0;
  std::uint64_t joined_bytes_ = 0;
  std::vector<Ending> endings_;
  std::uint64_t queue_bytes_ = 0, completions_ = 0;
  std::uint32_t queues_taken_from_ = 0, cookies_ = 0;
  std::uint64_t served_ = 0, turn_bytes_ = 0;
  bool has_called_ = false;  // in this turn
  bool has_answered_ = false, has_told_ = false, is_leaving_ = false, is_gone_ = false;
  std::string fault_;
};

}  // namespace fairlead::host
