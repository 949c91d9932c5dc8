#include "net/turn.hpp"

#include <mutex>
#include <utility>

namespace fairlead::net {

constinit thread_local Turn* Turn::innermost = nullptr;

void Turn::take() {
  thread_ = std::this_thread::get_id();
  outer_ = std::exchange(innermost, this);
}

void Turn::end() {
  thread_ = std::thread::id();
  innermost = outer_;
  changes_.tell();
}

void Turn::Pause::mark(bool is_paused) {
  for (Turn* turn = innermost; turn != nullptr; turn = turn->outer_) {
    const std::scoped_lock lock(turn->mutex_);
    turn->is_paused_ = is_paused;
    turn->changes_.tell();
  }
}

std::vector<const Machine*> Turn::Pause::machines() {
  std::vector<const Machine*> all;
  for (const Turn* turn = innermost; turn != nullptr; turn = turn->outer_) all.push_back(turn->owner_);
  return all;
}

}  // namespace fairlead::net
