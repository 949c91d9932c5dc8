#pragma once
// Intrusive lists of a transfer machine, guarded by its mutex, and scoped locks.

#include <cstddef>
#include <cstdint>

#include "doors/motr_net/include/motr_net.h"

namespace fairlead::motr {

class Locked {
 public:
  explicit Locked(m0_mutex& mutex) : mutex_(mutex) { m0_mutex_lock(&mutex_); }
  ~Locked() { m0_mutex_unlock(&mutex_); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  m0_mutex& mutex_;
};

/// The inverse: releases the mutex for code that calls back.
class Unlocked {
 public:
  explicit Unlocked(m0_mutex& mutex) : mutex_(mutex) { m0_mutex_unlock(&mutex_); }
  ~Unlocked() { m0_mutex_lock(&mutex_); }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  m0_mutex& mutex_;
};

inline void append(m0_tl& list, m0_net_buffer& buffer) {
  auto* const last = static_cast<m0_net_buffer*>(list.tl_last);
  buffer.nb_prev = last;
  buffer.nb_next = nullptr;
  if (last != nullptr)
    last->nb_next = &buffer;
  else
    list.tl_first = &buffer;
  list.tl_last = &buffer;
  ++list.tl_length;
}

inline void remove(m0_tl& list, m0_net_buffer& buffer) {
  if (buffer.nb_prev != nullptr)
    buffer.nb_prev->nb_next = buffer.nb_next;
  else
    list.tl_first = buffer.nb_next;
  if (buffer.nb_next != nullptr)
    buffer.nb_next->nb_prev = buffer.nb_prev;
  else
    list.tl_last = buffer.nb_prev;
  buffer.nb_prev = buffer.nb_next = nullptr;
  --list.tl_length;
}

/// Atomic access to flags: several machines, each with its own mutex, may want a buffer at once.
inline std::uint64_t flags_of(const m0_net_buffer& buffer) {
  return __atomic_load_n(&buffer.nb_flags, __ATOMIC_ACQUIRE);
}
inline void set_flags(m0_net_buffer& buffer, std::uint64_t flags) {
  __atomic_fetch_or(&buffer.nb_flags, flags, __ATOMIC_ACQ_REL);
}
inline void clear_flags(m0_net_buffer& buffer, std::uint64_t flags) {
  __atomic_fetch_and(&buffer.nb_flags, ~flags, __ATOMIC_ACQ_REL);
}

inline m0_net_buffer* first_buffer(const m0_tl& list) {
  return static_cast<m0_net_buffer*>(list.tl_first);
}

/// Queues as many pool buffers for messages as the machine lacks. The caller holds the pool's lock, but no machine's.
void provision(m0_net_transfer_mc& tm);
/// Does the same after locking the pool, unless the caller holds its lock.
void lock_and_provision(m0_net_transfer_mc& tm);

/// Marks that the calling thread runs a callback of a transfer machine.
class InCallback {
 public:
  explicit InCallback(const m0_net_transfer_mc& tm) : tm_(&tm), outer_(innermost) { innermost = this; }
  ~InCallback() { innermost = outer_; }
  InCallback(const InCallback&) = delete;
  InCallback& operator=(const InCallback&) = delete;
  static bool is_of(const m0_net_transfer_mc& tm) {
    const InCallback* each = innermost;
    while (each != nullptr && each->tm_ != &tm) each = each->outer_;
    return each != nullptr;
  }

 private:
  static inline constinit thread_local const InCallback* innermost = nullptr;
  const m0_net_transfer_mc* tm_;
  const InCallback* outer_;
};

/// Records that a callback has returned. The caller holds the mutex.
inline void callback_returned(m0_net_transfer_mc& tm) {
  if (--tm.ntm_callback_counter == 0) m0_chan_broadcast(&tm.ntm_chan);
}

}  // namespace fairlead::motr
