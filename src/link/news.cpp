#include "link/news.hpp"

namespace fairlead::link {

void News::finish(std::uint64_t cookie, bool is_wanted, Status status) {
  --counters_.messages_pending;
  if (status == Status::ok) [[likely]] {
    ++counters_.messages_ok;
  } else {
    ++(status == Status::canceled ? counters_.messages_canceled : counters_.messages_failed);
  }
  if (is_wanted) outcomes_.push({cookie, status});
}

std::optional<Notice> News::next_notice() {
  const auto notice = notices_.take();
  if (notice) losses_ -= notice->kind == Notice::Kind::lost;
  return notice;
}

}  // namespace fairlead::link
