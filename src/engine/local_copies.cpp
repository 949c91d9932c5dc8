#include "engine/local_copies.hpp"

#include <algorithm>
#include <new>

#include "base/scatter.hpp"

namespace fairlead::engine {

bool LocalCopies::reserve() try {
  if (copies_.size() == copies_.capacity()) copies_.reserve(2 * copies_.size() + 4);
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

void LocalCopies::begin_message(std::uint32_t active, std::uint32_t placement) {
  copies_.push_back({.active = context_.operations.name_of(active),
                     .placement = pack_name(placement, context_.placements.generation(placement)),
                     .length = context_.operations[active].length});
}

void LocalCopies::begin_transfer(std::uint32_t active, std::uint32_t exposure, std::uint64_t length) {
  copies_.push_back({.active = context_.operations.name_of(active),
                     .exposure = context_.operations.name_of(exposure),
                     .length = length});
}

std::size_t LocalCopies::find(std::uint32_t active) const {
  const std::uint64_t name = context_.operations.name_of(active);
  return static_cast<std::size_t>(std::ranges::find(copies_, name, &Copy::active) - copies_.begin());
}

LocalCopies::Copy LocalCopies::take(std::size_t index) {
  const Copy taken = copies_[index];
  copies_.erase(copies_.begin() + static_cast<std::ptrdiff_t>(index));
  if (next_ > index) --next_;
  return taken;
}

Placement* LocalCopies::placement(const Copy& copy) {
  return context_.placements.find(slot_of(copy.placement), generation_of(copy.placement));
}

Operation* LocalCopies::passive(const Copy& copy) {
  if (copy.exposure != 0) return context_.operations.find(copy.exposure);
  const Placement* const place = placement(copy);
  return place == nullptr ? nullptr : context_.operations.find(place->operation);
}

void LocalCopies::progress(base::Instant now) {
  for (std::uint64_t left = kBytesInTurn; left > 0 && !copies_.empty();) {
    if (next_ >= copies_.size()) next_ = 0;
    Copy& copy = copies_[next_];
    Operation* const other = passive(copy);
    const std::uint64_t bytes = other == nullptr ? 0 : std::min(left, copy.length - copy.done);
    if (other != nullptr) go_on(copy, *other, bytes);
    left -= bytes;
    if (other != nullptr && copy.done < copy.length) {
      ++next_;
      continue;
    }
    const Status gone = copy.exposure != 0 ? Status::stale : Status::no_buffer;
    end(take(next_), other == nullptr ? gone : Status::ok, now);
  }
}

void LocalCopies::go_on(Copy& copy, Operation& passive, std::uint64_t bytes) {
  const Operation& active = context_.operations[slot_of(copy.active)];
  const bool is_get = active.kind == OperationKind::get;
  const auto from = base::scatter_part(is_get ? passive.memory : active.memory, copy.done, bytes, part_);
  const std::uint64_t begin = copy.exposure != 0 ? 0 : placement(copy)->offset;
  base::scatter_copy(is_get ? active.memory : passive.memory, begin + copy.done, from, bytes);
  copy.done += bytes;
}

void LocalCopies::cancel(std::uint32_t active, base::Instant now) {
  end(take(find(active)), Status::canceled, now);
}

void LocalCopies::end(const Copy& copy, Status status, base::Instant now) {
  end_passive(copy, status, now);
  context_.operations.complete(slot_of(copy.active), status, copy.length, now);
}

void LocalCopies::end_passive(const Copy& copy, Status status, base::Instant now) {
  if (passive(copy) == nullptr) {
    if (copy.exposure == 0) context_.placements.release(slot_of(copy.placement));  // it was abandoned
  } else if (copy.exposure != 0) {
    exposures_.complete(slot_of(copy.exposure), status, copy.length, now);
  } else {
    receives_.end_placement(slot_of(copy.placement), status, now);
  }
}

}  // namespace fairlead::engine
