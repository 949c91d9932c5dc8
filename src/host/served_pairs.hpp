#pragma once
// The queue pairs of one application at the host engine.

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "embedded/embedded_core.hpp"
#include "host/pair_domains.hpp"
#include "host/pair_layout.hpp"
#include "host/pair_room.hpp"
#include "host/pairs_state.hpp"
#include "host/served_queues.hpp"
#include "qp/pair_core.hpp"

namespace fairlead::host {

struct ServedPair {
  qp::PairHandle handle;
  verbs::QpType type = verbs::QpType::rc;
  std::uint32_t incarnation = 0;       // chosen by the application; changes with each reset
  std::uint32_t domain = 0;            // the application's number for it
  std::optional<std::uint32_t> queue;  // slot of the shared receive queue, if it uses one
  PairRoom::Share share;
  std::uint32_t cookie = 0;  // in the engine's notices
  bool is_ending = false;
  bool is_resetting = false;  // until operations in flight have ended
  bool takes_posts = false;   // not while it is resetting or in RESET
};

class ServedPairs {
 public:
  static constexpr std::uint32_t kLooksInTurn = 64;

  ServedPairs(qp::PairCore& core, PairRoom& room, PairDomains& domains, std::uint32_t most)
      : core_(core), room_(room), domains_(domains), most_(most) {}

  /// The streams for its completions and notices.
  struct Streams {
    qp::CompletionStream* completions = nullptr;
    qp::NoticeStream* notices = nullptr;
  };
  /// `queue` is its shared receive queue; null: it has receives of its own.
  Result<PairAnswer> open(const PairCall& call, const Streams& streams, const ServedQueue* queue);
  Result<PairAnswer> facts(const PairCall& call);

  // Calls that wait for operations in flight:
  Result<qp::Withdrawal> begin_close(const PairCall& call);
  Result<qp::Withdrawal> begin_change(const PairCall& call);
  Result<qp::Withdrawal> begin_fail(const PairCall& call);
  void end_close(std::uint32_t index);
  void end_change(const PairCall& call);

  // For the next program in this process.
  void save(ApplicationPairsState& state) const;
  /// Sets `stream` to the completion stream of them all; null if there is none.
  Result<> restore(embedded::EmbeddedPairs& core, const ApplicationPairsState& state, qp::NoticeStream* notices,
                   qp::CompletionStream*& stream);
  /// Charges the room of all restored ones. Returns false if memory is short.
  bool take_room();

  /// Finds it by the index in its number. Returns null if it is closing or has another generation.
  ServedPair* find(std::uint32_t index, std::uint32_t generation);
  /// Also finds one that is closing. Returns null if there is none.
  const ServedPair* find(std::uint32_t index) const;
  const ServedPair* find_by_cookie(std::uint32_t cookie) const;
  /// Returns those that are not closing.
  std::vector<ServedPair> open_ones() const;
  /// Begins to look for those whose sends are not complete.
  void begin_linger();
  /// Returns false when the sends of all that were there have been complete. Looks at kLooksInTurn of them at most:
  /// each look takes the engine's lock.
  bool is_sending();
  std::uint32_t count() const noexcept { return static_cast<std::uint32_t>(pairs_.size()); }

 private:
  qp::PairCore& core_;
  PairRoom& room_;
  PairDomains& domains_;
  const std::uint32_t most_;
  std::unordered_map<std::uint32_t, ServedPair> pairs_;  // by the index in their numbers
  std::unordered_map<std::uint32_t, std::uint32_t> by_cookie_;
  std::vector<std::uint32_t> lingering_;  // indices of those whose sends may not be complete
  std::uint32_t cookies_ = 0;
};

}  // namespace fairlead::host
