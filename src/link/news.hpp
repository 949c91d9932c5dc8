#pragma once
// What the engine fetches from the link: outcomes of its messages, and notices about peers.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/fifo.hpp"
#include "link/hotel.hpp"
#include "link/link.hpp"
#include "link/link_counters.hpp"

namespace fairlead::link {

class News {
 public:
  News(LinkCounters& counters, Hotel& hotel) : counters_(counters), hotel_(hotel) {}

  /// Ends one message: counts it, and queues its outcome if the sender wants it.
  void finish(std::uint64_t cookie, bool is_wanted, Status status);
  /// Ends the short messages of a segment with this status; those with a status other than ok keep it. The segment is
  /// freed when the last of their outcomes is fetched.
  void finish(Segment& segment, Status status);
  void tell(const Notice& notice) {
    notices_.push(notice);
    losses_ += notice.kind == Notice::Kind::lost;
  }
  std::optional<Outcome> next_outcome();
  /// Fetches the outcome of one record of a segment that has ended.
  Outcome take_outcome(Segment& segment, std::uint32_t index);
  std::optional<Notice> next_notice();

  /// True if the engine has to fetch notices before the link accepts anything more.
  bool is_full() const { return notices_.size() >= kNoticesMax; }
  bool is_empty() const { return ended_.empty() && outcomes_.empty() && notices_.empty(); }
  bool has_loss() const { return losses_ != 0; }
  /// Reserves memory, so that every pending message and one more can end without an allocation.
  bool has_room_for_outcomes() { return outcomes_.has_room(counters_.messages_pending + 1); }
  std::size_t outcomes() const { return outcomes_.size() + of_ended_; }
  bool has_room_for_notices(std::size_t count) noexcept { return notices_.has_room(count); }

 private:
  static constexpr std::size_t kNoticesMax = 1U << 16;
  void count(std::uint32_t messages, Status status);

  LinkCounters& counters_;
  Hotel& hotel_;
  SegmentList ended_;         // segments of short messages
  std::size_t of_ended_ = 0;  // outcomes in those segments
  base::Fifo<Outcome> outcomes_;
  base::Fifo<Notice> notices_;
  std::uint32_t losses_ = 0;  // among the notices
};

}  // namespace fairlead::link
