#include "link/news.hpp"

#include <bit>
#include <span>

namespace fairlead::link {

void News::count(std::uint32_t messages, Status status) {
  counters_.messages_pending -= messages;
  if (status == Status::ok) [[likely]] {
    counters_.messages_ok += messages;
  } else {
    (status == Status::canceled ? counters_.messages_canceled : counters_.messages_failed) += messages;
  }
}

void News::finish(std::uint64_t cookie, bool is_wanted, Status status) {
  count(1, status);
  if (is_wanted) outcomes_.push({cookie, status});
}

void News::finish(Segment& segment, Status status) {
  count(segment.records, status);
  if (segment.outcomes_wanted == 0) return hotel_.check_out(segment);
  if (status != Status::ok) [[unlikely]] {
    for (Kept& record : std::span(segment.block->kept).first(segment.records))
      if (record.status == Status::ok) record.status = status;
  }
  segment.hook.unlink();
  segment.is_ended = true;
  ended_.push_back(segment);
  of_ended_ += static_cast<std::size_t>(std::popcount(segment.outcomes_wanted));
}

std::optional<Outcome> News::next_outcome() {
  if (ended_.empty()) return outcomes_.take();
  Segment& segment = ended_.front();
  return take_outcome(segment, static_cast<std::uint32_t>(std::countr_zero(segment.outcomes_wanted)));
}

Outcome News::take_outcome(Segment& segment, std::uint32_t index) {
  const Kept& record = segment.block->kept[index];
  const Outcome outcome{record.cookie, record.status, record.owner, record.length};
  segment.outcomes_wanted &= ~(std::uint32_t{1} << index);
  --of_ended_;
  if (segment.outcomes_wanted == 0) hotel_.check_out(segment);
  return outcome;
}

std::optional<Notice> News::next_notice() {
  const auto notice = notices_.take();
  if (notice) losses_ -= notice->kind == Notice::Kind::lost;
  return notice;
}

}  // namespace fairlead::link
