#include "link/short_sends.hpp"

#include "link/reference.hpp"

namespace fairlead::link {

/// Finds a message whose outcome is wanted and was not fetched.
ShortSends::Found ShortSends::find(OperationHandle name) {
  Segment* const segment = context_.hotel.with_block(room_of(name));
  if (segment == nullptr || segment->use != name.generation) return {};
  const std::uint32_t index = segment->find_number(number_of(name));
  return index != segment->records && segment->is_wanted(index) ? Found{segment, index} : Found{};
}

std::optional<Outcome> ShortSends::end_early(std::uint32_t owner, OperationHandle name) {
  const Found found = find(name);
  if (found.segment == nullptr || found.segment->block->kept[found.index].owner != owner) return std::nullopt;
  return end(*found.segment, found.index);
}

std::optional<Outcome> ShortSends::end_any_early(std::uint32_t owner, std::uint32_t& first) {
  for (; first < context_.hotel.rooms(); ++first) {
    Segment* const segment = context_.hotel.with_block(first);
    if (segment == nullptr) continue;
    for (std::uint32_t index = 0; index < segment->records; ++index)
      if (segment->is_wanted(index) && segment->block->kept[index].owner == owner) return end(*segment, index);
  }
  return std::nullopt;
}

/// Ends a message now. If it was sent, it stays in its segment, but no outcome follows.
Outcome ShortSends::end(Segment& segment, std::uint32_t index) {
  if (segment.is_ended) return context_.news.take_outcome(segment, index);
  const Kept record = segment.block->kept[index];
  if (segment.is_unsent()) {
    queues_.take_out(segment, index);
    context_.news.finish(record.cookie, false, Status::canceled);
  } else {
    segment.outcomes_wanted &= ~(std::uint32_t{1} << index);
    segment.given_up |= std::uint32_t{1} << index;
  }
  return {record.cookie, Status::canceled, record.owner, record.length};
}

bool ShortSends::mark_refused(const Peer& peer, OperationHandle name, Status status) {
  const Found found = find(name);
  if (found.segment == nullptr || found.segment->peer != &peer) return false;
  Kept& record = found.segment->block->kept[found.index];
  if (record.owner == Outcome::kNobody) return false;
  record.status = status;
  return true;
}

bool ShortSends::are_owing() {
  for (std::uint32_t room = 0; room < context_.hotel.rooms(); ++room) {
    const Segment* const segment = context_.hotel.with_block(room);
    if (segment != nullptr && segment->is_owing()) return true;
  }
  return false;
}

std::uint64_t ShortSends::count_pending(std::uint32_t owner) {
  std::uint64_t count = 0;
  for (std::uint32_t room = 0; room < context_.hotel.rooms(); ++room) {
    const Segment* const segment = context_.hotel.with_block(room);
    for (std::uint32_t index = 0; segment != nullptr && index < segment->records; ++index)
      count += segment->is_wanted(index) && segment->block->kept[index].owner == owner ? 1 : 0;
  }
  return count;
}

}  // namespace fairlead::link
