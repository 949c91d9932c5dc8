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
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "host/one_segment.hpp"
#include "host/pair_domains.hpp"
#include "host/pair_inbox.hpp"
#include "host/pair_layout.hpp"
#include "host/pair_posts.hpp"
#include "host/pair_room.hpp"
#include "host/quota.hpp"
#include "host/served_memory.hpp"
#include "host/served_pairs.hpp"
#include "host/served_queues.hpp"
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
  shm::Memory rings;
  ServedMemory::Shared regions;
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
  std::uint32_t count() const noexcept { return pairs_.count(); }

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
  std::string_view fault() const noexcept { return fault_; }

 private:
  static constexpr std::uint64_t kStreamCookie = ~0ULL;  // in the engine's notices

  /// A call that waits for what is in flight.
  struct Ending {
    PairCall::Kind kind;
    PairCall call;
    std::uint16_t slot = 0;
    qp::Withdrawal withdrawal;
    ServedMemory::Region region;  // as it was
  };
  /// A call, and what follows it.
  struct TakenCall {
    PairCall call;
    ServedMemory::Pieces pieces;
  };

  ApplicationPairs(qp::PairCore& core, PairTools& tools, PairMemory memory, PairInbox inbox, const Quota& quota)
      : core_(core),
        tools_(tools),
        rings_(std::move(memory.rings)),
        inbox_(std::move(inbox)),
        segment_({rings_.head() + PairLayout::events(), PairLayout::events_bytes()}),
        domains_(tools.domains),
        room_(quota.queue_bytes),
        pairs_(core, room_, domains_, quota.pairs),
        queues_(core, room_, domains_, page().taken),
        memory_(core, std::move(memory.regions), domains_) {}

  PairPage& page() const noexcept { return *reinterpret_cast<PairPage*>(rings_.head()); }
  void blame(std::string_view why);

  // Posts.
  void take(const TakenRequest& taken);
  void take_post(const TakenRequest& taken);

  // Calls.
  void take_call(const TakenRequest& taken);
  void carry_out(PairCall::Kind kind, const TakenCall& taken, std::uint16_t slot);
  static bool waits(PairCall::Kind kind);
  Result<PairAnswer> carry_out_at_once(PairCall::Kind kind, const TakenCall& taken);
  Result<qp::Withdrawal> begin(PairCall::Kind kind, const TakenCall& taken, ServedMemory::Region& before);
  bool end_endings();
  void finish(const Ending& ending);
  void answer(std::uint16_t slot, std::uint64_t number, const Result<PairAnswer>& with);

  // Events.
  std::uint32_t take_notices(std::span<qp::Notice> to);
  bool give_completions();
  void give_notice(const qp::Notice& notice);
  void give(const PairNews& news);
  void close_pairs();
  void end_what_is_left();

  qp::PairCore& core_;
  PairTools& tools_;
  shm::Memory rings_;
  PairInbox inbox_;
  OneSegment segment_;
  std::optional<queue::Producer> events_;
  shm::Socket socket_;
  qp::PairAccount* accounts_ = nullptr;
  qp::NoticeStream* notices_ = nullptr;
  qp::CompletionStream* stream_ = nullptr;

  PairDomains domains_;
  PairRoom room_;
  ServedPairs pairs_;
  ServedQueues queues_;
  ServedMemory memory_;
  std::vector<Ending> endings_;
  std::uint64_t served_ = 0, turn_bytes_ = 0;
  bool has_called_ = false;  // in this turn
  bool has_answered_ = false, has_told_ = false, is_leaving_ = false, is_gone_ = false;
  std::string_view fault_;
};

}  // namespace fairlead::host
