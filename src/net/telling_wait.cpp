#include "net/telling_wait.hpp"

#include <algorithm>
#include <mutex>

#include "net/turn.hpp"

namespace fairlead::net {
namespace {

constinit std::mutex waits_mutex;  // lock order: before the domains' locks

std::vector<const TellingWait*>& waits() {
  static std::vector<const TellingWait*> all;
  return all;
}

}  // namespace

TellingWait::TellingWait(const BufferState& buffer) : buffer_(buffer), turns_(Turn::Pause::machines()) {
  BufferState::Calling::keep_all();
  const std::scoped_lock lock(waits_mutex);
  waits().push_back(this);
}

TellingWait::~TellingWait() {
  const std::scoped_lock lock(waits_mutex);
  std::erase(waits(), this);
}

bool TellingWait::is_of(const Machine* machine) const {
  return std::ranges::find(turns_, machine) != turns_.end();
}

bool TellingWait::is_in_vain() const {
  const std::scoped_lock lock(waits_mutex);
  const Machine* next = teller();
  for (std::size_t steps = 0; next != nullptr && steps <= waits().size(); ++steps) {
    if (is_of(next)) return true;
    const auto wait = std::ranges::find_if(waits(), [&](const TellingWait* one) { return one->is_of(next); });
    next = wait == waits().end() ? nullptr : (*wait)->teller();
  }
  return false;
}

}  // namespace fairlead::net
