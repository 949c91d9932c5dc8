#include "shm/watch.hpp"

#include <sys/eventfd.h>

#include <algorithm>
#include <utility>

#include "base/barrier.hpp"

namespace fairlead::shm {

void Watch::make_room(std::uint32_t slot) {
  if (slot < is_reminded_.size()) return;
  reminders_.reserve(slot + 1);
  calling_.reserve(2 * (slot + 1));
  last_traffic_.resize(slot + 1, 0);
  is_reminded_.resize(slot + 1, false);
}

void Watch::begin(std::uint32_t slot) {
  make_room(slot);
  remind(slot);  // it may have written already
}

void Watch::forget(std::uint32_t slot) noexcept {
  auto* const end = std::remove(watched_.begin(), watched_.begin() + watched_count_, slot);
  watched_count_ = static_cast<std::uint32_t>(end - watched_.begin());
}

std::uint32_t Watch::next_calling() {
  if (std::exchange(place_, kCalling) != kCalling) {
    rouse();
    for (const std::uint32_t slot : reminders_) is_reminded_[slot] = false;
    calling_.insert(calling_.end(), reminders_.begin(), reminders_.end());
    reminders_.clear();  // those that come now are for the next look
    doorbell_.take([&](std::uint32_t slot) {
      if (slot < peers_.size()) calling_.push_back(slot);
    });
  }
  while (called_ < calling_.size()) {
    const std::uint32_t slot = calling_[called_++];
    if (!peers_[slot].is_audible()) continue;
    watch(slot);
    return slot;
  }
  calling_.clear();
  called_ = 0;
  return kNone;
}

void Watch::watch(std::uint32_t slot) {
  Connection& peer = peers_[slot];
  if (peer.is_watched) return;
  std::uint32_t place = watched_count_;
  if (place == kWatchedMax) {
    place = 0;
    while (place < kWatchedMax && looks_ - last_traffic_[watched_[place]] < kBusyLooks) ++place;
    if (place == kWatchedMax) return;  // all watched peers are busy: this one keeps ringing
    unwatch(place);
  } else {
    ++watched_count_;
  }
  watched_[place] = slot;
  last_traffic_[slot] = looks_;
  peer.watch();
}

void Watch::unwatch(std::uint32_t place) {
  const std::uint32_t slot = watched_[place];
  peers_[slot].unwatch();
  base::barrier_everywhere();
  ++counters_.unwatched;
  remind_if_news(slot);
}

// Stops watching idle peers, so that they cost a pass nothing. Issues one barrier for all of them.
void Watch::unwatch_idle() {
  std::array<std::uint32_t, kWatchedMax> idle;
  std::uint32_t idle_count = 0, kept = 0;
  for (std::uint32_t i = 0; i < watched_count_; ++i) {
    const std::uint32_t slot = watched_[i];
    if (looks_ - last_traffic_[slot] < kIdleLooks) {
      watched_[kept++] = slot;
    } else {
      idle[idle_count++] = slot;
      peers_[slot].unwatch();
    }
  }
  watched_count_ = kept;
  if (idle_count == 0) return;
  base::barrier_everywhere();
  counters_.unwatched += idle_count;
  for (std::uint32_t i = 0; i < idle_count; ++i) remind_if_news(idle[i]);
}

// Reminds of the peer, as if it had rung, if it has written or read meanwhile.
void Watch::remind_if_news(std::uint32_t slot) {
  const Connection& peer = peers_[slot];
  if (peer.reader.has_record() || peer.writer.has_news()) remind(slot);
}

void Watch::remind(std::uint32_t slot) {
  if (is_reminded_[slot]) return;
  is_reminded_[slot] = true;
  reminders_.push_back(slot);
  rouse();
}

void Watch::remind_of_news() {
  for (std::uint32_t slot = 0; slot < peers_.size(); ++slot)
    if (peers_[slot].state == Connection::State::open) remind_if_news(slot);
}

void Watch::rouse() noexcept {
  if (is_armed_ && !is_roused_) is_roused_ = ::eventfd_write(alarm_.get(), 1) == 0;
}

bool Watch::arm() {
  for (std::uint32_t i = 0; i < watched_count_; ++i) peers_[watched_[i]].unwatch();
  doorbell_.announce_sleep();
  if (watched_count_ > 0) base::barrier_everywhere();
  for (std::uint32_t i = 0; i < watched_count_; ++i) remind_if_news(watched_[i]);
  watched_count_ = 0;
  const bool has_news = doorbell_.has_rung() || !reminders_.empty();
  is_armed_ = true;
  ++counters_.sleeps;
  if (has_news) disarm();
  return !has_news;
}

void Watch::disarm() {
  if (!is_armed_) return;
  is_armed_ = false;
  doorbell_.end_sleep();
  eventfd_t ignored = 0;
  if (is_roused_) ::eventfd_read(alarm_.get(), &ignored);
  is_roused_ = false;
}

}  // namespace fairlead::shm
