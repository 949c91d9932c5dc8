#include "verbs/event_owners.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "verbs/context_state.hpp"

namespace fairlead::verbs {

std::uint64_t EventOwners::add(std::uint64_t cookie) {
  const std::scoped_lock lock(mutex_);
  owners_[next_number_] = {.cookie = cookie};
  return next_number_++;
}

void EventOwners::remove(std::uint64_t number, qp::NoticeStream& stream) {
  std::unique_lock lock(mutex_);
  acknowledged_.wait(lock, [&] {
    const auto found = owners_.find(number);
    return found == owners_.end() || found->second.got == found->second.acknowledged;
  });
  owners_.erase(number);
  discard(number, stream);
}

void EventOwners::discard(std::uint64_t number, qp::NoticeStream& stream) {
  // Without memory they stay in the stream, and get() skips them.
  while (stream.has_any() && waiting_.has_room(1)) waiting_.push(*stream.consume());
  for (std::size_t i = 0; i < waiting_.size();) {
    if (waiting_[i].cookie != number) {
      ++i;
      continue;
    }
    waiting_.erase(i);
    if (!stream.take_back()) ++counts_in_excess_;
  }
}

std::optional<qp::Notice> EventOwners::next(qp::NoticeStream& stream) {
  if (auto first = waiting_.take()) return first;
  const qp::Notice* const notice = stream.consume();
  return notice != nullptr ? std::optional(*notice) : std::nullopt;
}

Result<qp::Notice> EventOwners::get(qp::NoticeStream& stream, std::uint64_t& cookie) {
  for (;;) {
    std::uint64_t taken = 0;
    if (::read(stream.descriptor(), &taken, sizeof taken) != sizeof taken) {
      return failure(errno, "no event is there");
    }
    const std::scoped_lock lock(mutex_);
    if (counts_in_excess_ != 0) {
      --counts_in_excess_;
      continue;
    }
    const auto notice = next(stream);
    if (!notice) continue;
    const auto found = owners_.find(notice->cookie);
    if (found == owners_.end()) continue;
    ++found->second.got;
    cookie = found->second.cookie;
    return *notice;
  }
}

void EventOwners::acknowledge(std::uint64_t number, std::uint32_t count) {
  {
    const std::scoped_lock lock(mutex_);
    const auto found = owners_.find(number);
    if (found == owners_.end()) return;
    EventTally& tally = found->second;
    tally.acknowledged += std::min(count, tally.got - tally.acknowledged);
  }
  acknowledged_.notify_all();
}

}  // namespace fairlead::verbs
