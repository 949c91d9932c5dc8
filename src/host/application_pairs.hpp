#pragma once
// The queue pairs of an application at the host engine. Checks posts and calls, passes them on to an engine, and
// returns the results.
//
// As in application.hpp, nothing read from the shared memory is trusted. All queue pairs of the application use one
// completion stream of the engine; the application knows to which of its queues a completion belongs. The stream has
// room for all that can be posted, so only an application that posts more can overrun it.
//
// A call that closes or changes a queue pair, or changes or removes a region, is answered when operations in flight
// have ended. Meanwhile other calls are served.
//
// Not thread-safe: only the host engine's thread that serves this application calls it. Other threads of the engine may
// look for receives (posted_receives.hpp).

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "embedded/embedded_core.hpp"
#include "host/one_segment.hpp"
#include "host/pair_domains.hpp"
#include "host/pair_inbox.hpp"
#include "host/pair_layout.hpp"
#include "host/pair_posts.hpp"
#include "host/pair_room.hpp"
#include "host/pairs_state.hpp"
#include "host/posted_receives.hpp"
#include "host/quota.hpp"
#include "host/served_memory.hpp"
#include "host/served_pairs.hpp"
#include "host/served_queues.hpp"
#include "queue/producer.hpp"
#include "shm/memory.hpp"
#include "shm/socket.hpp"
#include "wire/pair_words.hpp"

namespace fairlead::host {

/// Tools that all applications of a host engine use in turn.
struct PairTools {
  DomainNumbers domains;
  PairPosts posts;
};

/// The memory that an application shares for queue pairs.
struct PairMemory {
  shm::Memory rings;
  base::ForeignDescriptor rings_file;
  ServedMemory::Shared regions;
};

class ApplicationPairs {
 public:
  /// A turn ends after so many requests, so many bytes that they name, or one call. It begins with receives, at most
  /// PostedReceives::kReceivesInTurn.
  struct Turn {
    std::uint32_t requests;
    std::uint64_t bytes;
  };
  static constexpr Turn kTurn{64, 1 << 20}, kSharedTurn{4, 64 << 10};
  static constexpr std::size_t kEndingsMax = 2 * kPairsMax;
  /// How many calls that wait are looked at in a turn. Each look takes the engine's lock.
  static constexpr std::size_t kEndingsInTurn = 64;

  /// `memory` belongs to the application.
  static Result<std::unique_ptr<ApplicationPairs>> open(embedded::EmbeddedPairs& core, PairTools& tools,
                                                        PairMemory memory, const Quota& quota);
  ~ApplicationPairs();

  /// Continues where the previous program in this process stopped (application_pairs_saved.cpp).
  static Result<std::unique_ptr<ApplicationPairs>> restore(embedded::EmbeddedPairs& core, PairTools& tools,
                                                           PairMemory memory, shm::Socket socket,
                                                           const ApplicationPairsState& state, const Quota& quota);
  /// Takes the completions of the engine and saves everything. Makes no call to the engine. Returns `again` if a call
  /// waits, or the application is leaving or does not take its events.
  Result<ApplicationPairsState> save();

  const shm::Socket& socket() const noexcept { return socket_; }
  void connect(shm::Socket socket) { socket_ = std::move(socket); }
  /// Becomes readable when the engine has something for a parked application.
  int descriptor() const noexcept { return notices_->descriptor(); }
  std::uint32_t count() const noexcept { return pairs_.count(); }
  std::uint64_t registered_bytes() const noexcept { return memory_.bytes(); }

  /// Serves the requests of one turn, which is short unless this application is alone. Returns true if there were any.
  bool take_requests(bool is_alone = true);
  /// Returns true if there was anything to deliver.
  bool give_events();
  /// Returns whether calls were answered since the last call.
  bool has_answered() noexcept { return std::exchange(has_answered_, false); }
  /// Prepares for the host engine's sleep. Returns false if there is work.
  bool park();

  /// Ends everything, because the application has left or must leave.
  void leave();
  bool is_gone() const noexcept { return is_gone_; }
  /// Returns why it must leave; empty if it need not.
  std::string_view fault() const noexcept { return fault_; }

 private:
  static constexpr std::uint64_t kStreamCookie = ~0ULL;  // in the engine's notices
  static constexpr std::uint32_t kNoticesInTurn = 32, kCompletionsInTurn = 64;
  static constexpr std::uint64_t kRoomLeast =
      2 * (kNoticesInTurn + kCompletionsInTurn);  // among the events, for a turn

  /// Notices of the engine. They are delivered when `completions` completions have been, in total.
  struct Due {
    std::array<qp::Notice, kNoticesInTurn> notices;
    std::uint32_t count = 0;
    std::uint64_t completions = 0;
  };

  /// A call that waits for operations in flight.
  struct Ending {
    PairCall::Kind kind;
    PairCall call;
    std::uint16_t slot = 0;
    qp::Withdrawal withdrawal;
    ServedMemory::Region region;  // the region before the change
  };
  /// A call and the data that follows it.
  struct TakenCall {
    PairCall call;
    ServedMemory::Pieces pieces;
  };

  ApplicationPairs(embedded::EmbeddedPairs& core, PairTools& tools, PairMemory memory, PairInbox inbox,
                   PairInbox receives, const Quota& quota)
      : core_(core),
        tools_(tools),
        rings_(std::move(memory.rings)),
        rings_file_(std::move(memory.rings_file)),
        inbox_(std::move(inbox)),
        receives_(std::move(receives)),
        segment_({rings_.head() + PairLayout::events(), PairLayout::events_bytes()}),
        domains_(tools.domains),
        room_(quota.queue_bytes),
        pairs_(core, room_, domains_, quota.pairs),
        queues_(core, room_, domains_, receives_, page().taken),
        memory_(core, std::move(memory.regions), domains_, quota.registered_bytes) {}

  PairPage& page() const noexcept { return *reinterpret_cast<PairPage*>(rings_.head()); }
  void blame(std::string_view why);
  void blame_for_post(int error);

  // Posts.
  std::uint32_t take_receives();
  void take(const TakenRequest& taken);
  void take_send(const TakenRequest& taken);

  // Calls.
  void take_call(const TakenRequest& taken);
  void carry_out(PairCall::Kind kind, const TakenCall& taken, std::uint16_t slot);
  static bool waits(PairCall::Kind kind);
  Result<PairAnswer> carry_out_at_once(PairCall::Kind kind, const TakenCall& taken);
  Result<qp::Withdrawal> begin(PairCall::Kind kind, const TakenCall& taken, ServedMemory::Region& before);
  bool end_endings();
  void end_linger();
  void finish(const Ending& ending);
  void answer(std::uint16_t slot, std::uint64_t number, const Result<PairAnswer>& with);

  // Events.
  void take_notices(bool needs_room = true);
  const ServedPair* pair_of(const qp::PairEvent& event) const {
    return pairs_.find(event.completion.qp_num % wire::PairPort::kPairs);
  }
  void hold(std::span<const qp::PairEvent> events);
  std::uint32_t next_completions(std::span<qp::PairEvent> to);
  /// Returns the number of completions that left the stream and are not held.
  std::uint64_t given() const { return stream_->taken() + restored_ - held_.size(); }
  Result<> restore(embedded::EmbeddedPairs& core, const ApplicationPairsState& state);
  bool give_notices();
  bool give_completions();
  void give_notice(const qp::Notice& notice);
  void give(const PairNews& news);
  void close_pairs();
  void end_what_is_left();

  embedded::EmbeddedPairs& core_;
  PairTools& tools_;
  shm::Memory rings_;
  base::ForeignDescriptor rings_file_;  // of rings_
  PairInbox inbox_;                     // sends and calls
  PostedReceives receives_;
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
  std::size_t next_ending_ = 0;  // to be looked at
  Due due_;
  // Taken from the stream for the next program, and not delivered. Their incarnations are those of the application: the
  // stream has checked the engine's.
  std::deque<qp::PairEvent> held_;
  std::uint64_t restored_ = 0;  // number of those that the previous program left
  std::uint64_t turn_bytes_ = 0;
  std::uint64_t lingers_ = 0;  // number of the linger call that waits; 0: none
  bool has_called_ = false;    // in this turn
  bool has_answered_ = false, has_told_ = false, is_leaving_ = false, is_gone_ = false;
  std::string_view fault_;
};

}  // namespace fairlead::host
