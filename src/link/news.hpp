#pragma once
// What the engine has to be told: outcomes of its messages, and notices about peers.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/fifo.hpp"
#include "link/link.hpp"
#include "link/link_counters.hpp"

namespace fairlead::link {

class News {
 public:
  explicit News(LinkCounters& counters) : counters_(counters) {}

  /// Ends one message: counts it, and queues its outcome if the sender wants it.
  void finish(std::uint64_t cookie, bool is_wanted, Status status);
  void tell(const Notice& notice) {
    notices_.push(notice);
    losses_ += notice.kind == Notice::Kind::lost;
  }
  std::optional<Outcome> next_outcome() { return outcomes_.take(); }
  std::optional<Notice> next_notice();

  /// True if the engine has to fetch notices before the link accepts anything more.
  bool is_full() const { return notices_.size() >= kNoticesMax; }
  bool is_empty() const { return outcomes_.empty() && notices_.empty(); }
  bool has_loss() const { return losses_ != 0; }
  /// Reserves memory, so that every pending message and one more can end without an allocation.
  bool has_room_for_outcomes() { return outcomes_.has_room(counters_.messages_pending + 1); }
  std::size_t outcomes() const { return outcomes_.size(); }
  bool has_room_for_notices(std::size_t count) noexcept { return notices_.has_room(count); }

 private:
  static constexpr std::size_t kNoticesMax = 1U << 16;
  LinkCounters& counters_;
  base::Fifo<Outcome> outcomes_;
  base::Fifo<Notice> notices_;
  std::uint32_t losses_ = 0;  // among the notices
};

}  // namespace fairlead::link
