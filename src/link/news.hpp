#pragma once
// What the engine is to be told: how its messages ended, and what became of peers.

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

  /// One message ends: counted, and told if somebody wants to know.
  void finish(std::uint64_t cookie, bool is_wanted, Status status);
  void tell(const Notice& notice) {
    notices_.push(notice);
    losses_ += notice.kind == Notice::Kind::lost;
  }
  std::optional<Outcome> next_outcome() { return outcomes_.take(); }
  std::optional<Notice> next_notice();

  /// Nothing more is taken in before the engine has heard of some of it.
  bool is_full() const { return notices_.size() >= kNoticesMax; }
  bool is_empty() const { return outcomes_.empty() && notices_.empty(); }
  bool has_loss() const { return losses_ != 0; }
  /// Each of the messages that are pending, and one more, can end without memory.
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
