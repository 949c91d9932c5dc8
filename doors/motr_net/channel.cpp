// Motr's lib: mutexes and channels.

#include <cerrno>
#include <ctime>

#include "doors/motr_net/include/motr_net.h"
#include "doors/motr_net/refuse.hpp"

using fairlead::motr::is_any_null;
using fairlead::motr::refuse;

namespace {

/// Holds the mutex of a channel.
class Guarded {
 public:
  explicit Guarded(m0_chan* chan) : guard_(is_any_null(chan) ? nullptr : chan->ch_guard) { m0_mutex_lock(guard_); }
  ~Guarded() { m0_mutex_unlock(guard_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

 private:
  m0_mutex* guard_;
};

/// Wakes the first link, or all of them.
void wake(m0_chan* chan, bool is_for_all) {
  if (is_any_null(chan)) return;
  for (m0_clink *link = chan->ch_first, *next = nullptr; link != nullptr; link = next) {
    next = link->cl_next;  // the callback may remove its link
    const bool is_consumed = link->cl_cb != nullptr && link->cl_cb(link);
    if (!is_consumed) ::sem_post(&link->cl_wait);
    if (!is_for_all) return;
  }
}

}  // namespace

void m0_mutex_init(m0_mutex* mutex) {
  if (is_any_null(mutex)) return;
  *mutex = {};
  ::pthread_mutex_init(&mutex->m_impl, nullptr);
}
void m0_mutex_fini(m0_mutex* mutex) {
  if (is_any_null(mutex)) return;
  ::pthread_mutex_destroy(&mutex->m_impl);
}
void m0_mutex_lock(m0_mutex* mutex) {
  if (is_any_null(mutex)) return;
  ::pthread_mutex_lock(&mutex->m_impl);
  __atomic_store_n(&mutex->m_owner, ::pthread_self(), __ATOMIC_RELAXED);
  __atomic_store_n(&mutex->m_is_locked, true, __ATOMIC_RELEASE);  // after m_owner is set
}
void m0_mutex_unlock(m0_mutex* mutex) {
  if (is_any_null(mutex)) return;
  __atomic_store_n(&mutex->m_is_locked, false, __ATOMIC_RELAXED);
  ::pthread_mutex_unlock(&mutex->m_impl);
}
bool m0_mutex_is_locked(const m0_mutex* mutex) {
  return !is_any_null(mutex) && __atomic_load_n(&mutex->m_is_locked, __ATOMIC_ACQUIRE) &&
         ::pthread_equal(__atomic_load_n(&mutex->m_owner, __ATOMIC_RELAXED), ::pthread_self()) != 0;
}

void m0_chan_init(m0_chan* chan, m0_mutex* guard) {
  if (is_any_null(chan)) return;
  *chan = {guard, nullptr};
}
void m0_chan_fini(m0_chan* chan) {
  if (is_any_null(chan)) return;
  chan->ch_first = nullptr;
}
void m0_chan_fini_lock(m0_chan* chan) {
  const Guarded guarded(chan);
  m0_chan_fini(chan);
}
void m0_chan_signal(m0_chan* chan) {
  wake(chan, false);
}
void m0_chan_signal_lock(m0_chan* chan) {
  const Guarded guarded(chan);
  wake(chan, false);
}
void m0_chan_broadcast(m0_chan* chan) {
  wake(chan, true);
}
void m0_chan_broadcast_lock(m0_chan* chan) {
  const Guarded guarded(chan);
  wake(chan, true);
}

void m0_clink_init(m0_clink* link, m0_chan_cb_t callback) {
  if (is_any_null(link)) return;
  *link = {};
  link->cl_cb = callback;
  ::sem_init(&link->cl_wait, 0, 0);
}
void m0_clink_fini(m0_clink* link) {
  if (is_any_null(link)) return;
  ::sem_destroy(&link->cl_wait);
}
void m0_clink_add(m0_chan* chan, m0_clink* link) {
  if (is_any_null(chan, link)) return;
  if (m0_clink_is_armed(link)) {
    refuse(EBADFD, "the link is on a channel already");
    return;
  }
  link->cl_chan = chan;
  link->cl_next = nullptr;
  m0_clink** last = &chan->ch_first;  // in the order in which they were added
  while (*last != nullptr) last = &(*last)->cl_next;
  *last = link;
}
void m0_clink_add_lock(m0_chan* chan, m0_clink* link) {
  const Guarded guarded(chan);
  m0_clink_add(chan, link);
}
void m0_clink_del(m0_clink* link) {
  if (!m0_clink_is_armed(link)) {
    refuse(EBADFD, "the link is on no channel");
    return;
  }
  m0_clink** place = &link->cl_chan->ch_first;
  while (*place != nullptr && *place != link) place = &(*place)->cl_next;
  if (*place == link) *place = link->cl_next;
  link->cl_chan = nullptr;
}
void m0_clink_del_lock(m0_clink* link) {
  if (!m0_clink_is_armed(link)) return m0_clink_del(link);
  const Guarded guarded(link->cl_chan);
  m0_clink_del(link);
}
bool m0_clink_is_armed(const m0_clink* link) {
  return !is_any_null(link) && link->cl_chan != nullptr;
}
void m0_chan_wait(m0_clink* link) {
  if (is_any_null(link)) return;
  while (::sem_wait(&link->cl_wait) != 0 && errno == EINTR) continue;
}
bool m0_chan_trywait(m0_clink* link) {
  return !is_any_null(link) && ::sem_trywait(&link->cl_wait) == 0;
}
bool m0_chan_timedwait(m0_clink* link, m0_time_t until) {
  if (is_any_null(link)) return false;
  if (until == M0_TIME_NEVER) {
    m0_chan_wait(link);
    return true;
  }
  const timespec time{.tv_sec = static_cast<time_t>(m0_time_seconds(until)),
                      .tv_nsec = static_cast<long>(m0_time_nanoseconds(until))};
  int waited = 0;
  while ((waited = ::sem_clockwait(&link->cl_wait, CLOCK_MONOTONIC, &time)) != 0 && errno == EINTR) continue;
  return waited == 0;
}
