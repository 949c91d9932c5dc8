#include "verbs/probed_memory.hpp"

#include <algorithm>
#include <iterator>
#include <new>

#include "base/mapped_memory.hpp"

namespace fairlead::verbs {

int ProbedMemory::enter(const void* address, std::uint64_t length, bool is_written, Use& use) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const bool is_range = length != 0 && length <= UINTPTR_MAX - begin;
  if (is_range && join(begin, begin + length, is_written, use)) return 0;
  const int error = base::probe_memory(address, length, is_written);
  if (error != 0 || !is_range) return error;
  const std::scoped_lock lock(mutex_);
  try {
    Range& range = (is_written ? writable_ : readable_)[begin];
    range.end = std::max(range.end, begin + length);
    ++range.users;
    use = {begin, is_written, true};
  } catch (const std::bad_alloc&) {  // the next registration probes it again
  }
  return 0;
}

/// Joins a range that covers all of this memory. Looks only at the nearest one: a miss costs a probe.
bool ProbedMemory::join(std::uintptr_t begin, std::uintptr_t end, bool is_written, Use& use) {
  const std::scoped_lock lock(mutex_);
  Ranges& ranges = is_written ? writable_ : readable_;
  const auto after = ranges.upper_bound(begin);
  if (after == ranges.begin()) return false;
  const auto nearest = std::prev(after);
  if (nearest->second.end < end) return false;
  ++nearest->second.users;
  use = {nearest->first, is_written, true};
  return true;
}

void ProbedMemory::leave(const Use& use) {
  if (!use.is_counted) return;
  const std::scoped_lock lock(mutex_);
  Ranges& ranges = use.is_written ? writable_ : readable_;
  const auto found = ranges.find(use.begin);
  if (found != ranges.end() && --found->second.users == 0) ranges.erase(found);
}

}  // namespace fairlead::verbs
