// Transfer machines and their end points, independent of the transport.

#include <utility>

#include "doors/motr_net/include/motr_net.h"
#include "doors/motr_net/lists.hpp"
#include "doors/motr_net/refuse.hpp"

using fairlead::motr::callback_returned;
using fairlead::motr::first_buffer;
using fairlead::motr::flags_of;
using fairlead::motr::InCallback;
using fairlead::motr::is_any_null;
using fairlead::motr::Locked;
using fairlead::motr::refuse;
using fairlead::motr::set_flags;

namespace {

const m0_net_xprt_ops& ops_of(const m0_net_transfer_mc* tm) {
  return *tm->ntm_dom->nd_xprt->nx_ops;
}

bool is_alive(const m0_net_transfer_mc* tm) {
  if (tm != nullptr && tm->ntm_dom != nullptr) return true;  // nobody changes ntm_dom between init and fini
  refuse(EBADFD, "the transfer machine is not initialised");
  return false;
}

bool is_before_end(m0_net_tm_state state) {
  return state == M0_NET_TM_INITIALIZED || state == M0_NET_TM_STARTING || state == M0_NET_TM_STARTED;
}

void wait_for_callbacks(m0_net_transfer_mc* tm) {
  m0_clink link;
  m0_clink_init(&link, nullptr);
  m0_mutex_lock(&tm->ntm_mutex);
  m0_clink_add(&tm->ntm_chan, &link);
  while (tm->ntm_callback_counter > 0) {
    m0_mutex_unlock(&tm->ntm_mutex);
    m0_chan_wait(&link);
    m0_mutex_lock(&tm->ntm_mutex);
  }
  m0_clink_del(&link);
  m0_mutex_unlock(&tm->ntm_mutex);
  m0_clink_fini(&link);
}

/// Returns why the machine cannot be finalised now; null if it can.
const char* objection_to_end(const m0_net_transfer_mc* tm) {
  if (tm->ntm_state != M0_NET_TM_INITIALIZED && tm->ntm_state != M0_NET_TM_STOPPED && tm->ntm_state != M0_NET_TM_FAILED)
    return "the transfer machine runs: stop it, and wait for the event STOPPED";
  for (const m0_tl& queue : tm->ntm_q)
    if (queue.tl_length != 0) return "the transfer machine has buffers";
  const m0_net_end_point* const own = tm->ntm_ep;
  const bool is_own_alone = own != nullptr && tm->ntm_end_points.tl_length == 1 &&
                            __atomic_load_n(&own->nep_ref.ref_cnt, __ATOMIC_ACQUIRE) == 1;
  return tm->ntm_end_points.tl_length == 0 || is_own_alone ? nullptr : "somebody still has end points: put them";
}

void leave_domain(m0_net_transfer_mc* tm) {
  m0_net_transfer_mc** place = &tm->ntm_dom->nd_tms;
  while (*place != tm) place = &(*place)->ntm_next;
  *place = tm->ntm_next;
}

template <typename Change>
int configure(m0_net_transfer_mc* tm, Change&& change) {
  if (!is_alive(tm)) return -EBADFD;
  const Locked lock(tm->ntm_mutex);
  if (tm->ntm_state != M0_NET_TM_INITIALIZED) return refuse(EBADFD, "the transfer machine was started already");
  return change();
}

}  // namespace

// Life --------------------------------------------------------------------------------------------------------------

int m0_net_tm_init(m0_net_transfer_mc* tm, m0_net_domain* dom) {
  if (tm == nullptr || dom == nullptr) return refuse(EINVAL, "no transfer machine, or no domain");
  if (tm->ntm_dom != nullptr) return refuse(EBADFD, "the transfer machine is initialised already");
  if (dom->nd_xprt == nullptr) return refuse(EBADFD, "the domain is not initialised");
  const m0_net_tm_callbacks* const callbacks = tm->ntm_callbacks;
  if (callbacks == nullptr || callbacks->ntc_event_cb == nullptr)
    return refuse(EINVAL, "a transfer machine wants a callback for its events (ntm_callbacks)");
  *tm = {};
  tm->ntm_callbacks = callbacks;
  tm->ntm_dom = dom;
  tm->ntm_bev_auto_deliver = true;
  tm->ntm_recv_queue_min_length = M0_NET_TM_RECV_QUEUE_DEF_LEN;
  tm->ntm_pool_colour = M0_BUFFER_ANY_COLOUR;
  m0_mutex_init(&tm->ntm_mutex);
  m0_chan_init(&tm->ntm_chan, &tm->ntm_mutex);
  const Locked lock(dom->nd_mutex);
  if (const int error = ops_of(tm).xo_tm_init(tm); error != 0) {
    m0_mutex_fini(&tm->ntm_mutex);
    *tm = {};
    tm->ntm_callbacks = callbacks;
    return error;
  }
  tm->ntm_state = M0_NET_TM_INITIALIZED;
  tm->ntm_next = std::exchange(dom->nd_tms, tm);
  return 0;
}

void m0_net_tm_fini(m0_net_transfer_mc* tm) {
  if (!is_alive(tm)) return;
  if (InCallback::is_of(*tm)) {
    refuse(EBUSY, "a callback cannot finalise its own transfer machine, as that waits for callbacks");
    return;
  }
  wait_for_callbacks(tm);
  m0_net_end_point* own = nullptr;
  {
    const Locked lock(tm->ntm_mutex);
    if (const char* const why = objection_to_end(tm); why != nullptr) {
      refuse(EBUSY, why);
      return;
    }
    own = std::exchange(tm->ntm_ep, nullptr);
  }
  if (own != nullptr) m0_net_end_point_put(own);
  {
    const Locked lock(tm->ntm_dom->nd_mutex);
    ops_of(tm).xo_tm_fini(tm);  // returns only after the thread that posted the last event has left
    leave_domain(tm);
  }
  m0_mutex_fini(&tm->ntm_mutex);
  const m0_net_tm_callbacks* const callbacks = tm->ntm_callbacks;
  *tm = {};
  tm->ntm_callbacks = callbacks;
}

int m0_net_tm_confine(m0_net_transfer_mc* tm, const m0_bitmap* processors) {
  return configure(tm, [&] {
    const auto confine = ops_of(tm).xo_tm_confine;
    return confine != nullptr ? confine(tm, processors) : refuse(ENOSYS, "the transport confines no threads");
  });
}

int m0_net_tm_start(m0_net_transfer_mc* tm, const char* addr) {
  return configure(tm, [&] {
    if (addr == nullptr) return refuse(EINVAL, "a start without an address");
    tm->ntm_state = M0_NET_TM_STARTING;
    const int error = ops_of(tm).xo_tm_start(tm, addr);
    if (error != 0) tm->ntm_state = M0_NET_TM_FAILED;
    return error;
  });
}

int m0_net_tm_stop(m0_net_transfer_mc* tm, bool abort) {
  if (!is_alive(tm)) return -EBADFD;
  const Locked lock(tm->ntm_mutex);
  const m0_net_tm_state before = tm->ntm_state;
  if (!is_before_end(before)) return refuse(EBADFD, "the transfer machine does not run");
  // A starting machine is stopped right after its start.
  if (before == M0_NET_TM_STARTING)
    tm->ntm_stop_pending = true;
  else
    tm->ntm_state = M0_NET_TM_STOPPING;
  for (int queue = 0; abort && queue < M0_NET_QT_NR; ++queue) {
    for (m0_net_buffer* each = first_buffer(tm->ntm_q[queue]); each != nullptr; each = each->nb_next) {
      if ((flags_of(*each) & M0_NET_BUF_CANCELLED) == 0) ++tm->ntm_qstats[queue].nqs_num_dels;
      set_flags(*each, M0_NET_BUF_CANCELLED);
    }
  }
  tm->ntm_recv_queue_deficit = 0;
  const int error = ops_of(tm).xo_tm_stop(tm, abort);
  if (error == 0) return 0;
  if (tm->ntm_state == M0_NET_TM_STOPPING) tm->ntm_state = before;  // restore the state unless an event has changed it
  tm->ntm_stop_pending = false;
  return error;
}

void m0_net_tm_event_post(const m0_net_tm_event* ev) {
  if (is_any_null(ev) || !is_alive(ev->nte_tm)) return;
  m0_net_transfer_mc* const tm = ev->nte_tm;
  const InCallback inside(*tm);
  const bool is_start = ev->nte_type == M0_NET_TEV_STATE_CHANGE && ev->nte_next_state == M0_NET_TM_STARTED;
  {
    const Locked lock(tm->ntm_mutex);
    if (ev->nte_type == M0_NET_TEV_STATE_CHANGE) tm->ntm_state = ev->nte_next_state;
    if (is_start) tm->ntm_ep = ev->nte_ep;
    ++tm->ntm_callback_counter;
  }
  tm->ntm_callbacks->ntc_event_cb(ev);
  // After the callback, so that the application learns of the start before its first message.
  if (is_start && tm->ntm_recv_pool != nullptr) fairlead::motr::lock_and_provision(*tm);
  const Locked lock(tm->ntm_mutex);
  if (is_start && tm->ntm_stop_pending && tm->ntm_state == M0_NET_TM_STARTED) tm->ntm_state = M0_NET_TM_STOPPING;
  callback_returned(*tm);
}

// Settings and figures ----------------------------------------------------------------------------------------------

int m0_net_tm_stats_get(m0_net_transfer_mc* tm, m0_net_queue_type qtype, m0_net_qstats* qs, bool reset) {
  if (!is_alive(tm)) return -EBADFD;
  if (qtype > M0_NET_QT_NR || (qs == nullptr && !reset)) return refuse(EINVAL, "no such queue, or nowhere to put it");
  const Locked lock(tm->ntm_mutex);
  const bool is_all = qtype == M0_NET_QT_NR;
  const int first = is_all ? 0 : static_cast<int>(qtype), count = is_all ? M0_NET_QT_NR : 1;
  for (int i = 0; i < count; ++i) {
    if (qs != nullptr) qs[i] = tm->ntm_qstats[first + i];
    if (reset) tm->ntm_qstats[first + i] = {};
  }
  return 0;
}

int m0_net_tm_pool_attach(m0_net_transfer_mc* tm, m0_net_buffer_pool* bufpool, const m0_net_buffer_callbacks* callbacks,
                          m0_bcount_t min_recv_size, uint32_t max_recv_msgs, uint32_t min_recv_queue_len) {
  return configure(tm, [&] {
    if (callbacks == nullptr || callbacks->nbc_cb[M0_NET_QT_MSG_RECV] == nullptr || min_recv_size == 0 ||
        max_recv_msgs == 0)
      return refuse(EINVAL, "a pool wants a callback for messages, and sizes above 0");
    if (bufpool == nullptr || bufpool->nbp_ndom != tm->ntm_dom) return refuse(EINVAL, "the pool is of another domain");
    tm->ntm_recv_pool = bufpool;
    tm->ntm_recv_pool_callbacks = callbacks;
    tm->ntm_recv_queue_min_recv_size = min_recv_size;
    tm->ntm_recv_queue_max_recv_msgs = max_recv_msgs;
    if (min_recv_queue_len > M0_NET_TM_RECV_QUEUE_DEF_LEN) tm->ntm_recv_queue_min_length = min_recv_queue_len;
    return 0;
  });
}

void m0_net_tm_pool_length_set(m0_net_transfer_mc* tm, uint32_t len) {
  if (!is_alive(tm)) return;
  bool has_pool = false;
  {
    const Locked lock(tm->ntm_mutex);
    if (!is_before_end(tm->ntm_state)) {
      refuse(EBADFD, "the transfer machine does not run");
      return;
    }
    if (len > M0_NET_TM_RECV_QUEUE_DEF_LEN) tm->ntm_recv_queue_min_length = len;
    has_pool = tm->ntm_state == M0_NET_TM_STARTED && tm->ntm_recv_pool != nullptr;
  }
  if (has_pool) fairlead::motr::lock_and_provision(*tm);
}

void m0_net_tm_colour_set(m0_net_transfer_mc* tm, uint32_t colour) {
  if (!is_alive(tm)) return;
  const Locked lock(tm->ntm_mutex);
  tm->ntm_pool_colour = colour;
}

uint32_t m0_net_tm_colour_get(m0_net_transfer_mc* tm) {
  if (!is_alive(tm)) return M0_BUFFER_ANY_COLOUR;
  const Locked lock(tm->ntm_mutex);
  return tm->ntm_pool_colour;
}

bool m0_net_tm_tlist_is_empty(const m0_tl* list) {
  return is_any_null(list) || list->tl_length == 0;
}
uint64_t m0_net_tm_tlist_length(const m0_tl* list) {
  return is_any_null(list) ? 0 : list->tl_length;
}

// End points --------------------------------------------------------------------------------------------------------

int m0_net_end_point_create(m0_net_end_point** epp, m0_net_transfer_mc* tm, const char* addr) {
  if (!is_alive(tm)) return -EBADFD;
  if (epp == nullptr || addr == nullptr) return refuse(EINVAL, "an end point without an address, or nowhere to put it");
  const Locked lock(tm->ntm_mutex);
  if (tm->ntm_state != M0_NET_TM_STARTED) return refuse(EBADFD, "the transfer machine is not started");
  return ops_of(tm).xo_end_point_create(epp, tm, addr);
}

void m0_net_end_point_get(m0_net_end_point* ep) {
  if (ep == nullptr) {
    refuse(EINVAL, "no end point");
    return;
  }
  __atomic_add_fetch(&ep->nep_ref.ref_cnt, 1, __ATOMIC_RELAXED);
}

void m0_net_end_point_put(m0_net_end_point* ep) {
  if (ep == nullptr) {
    refuse(EINVAL, "no end point");
    return;
  }
  const Locked lock(ep->nep_tm->ntm_mutex);
  if (__atomic_sub_fetch(&ep->nep_ref.ref_cnt, 1, __ATOMIC_ACQ_REL) == 0) ep->nep_ref.release(&ep->nep_ref);
}

// Synchronous delivery ----------------------------------------------------------------------------------------------

namespace {

bool is_delivering(const m0_net_transfer_mc* tm) {
  const bool runs = tm->ntm_state == M0_NET_TM_STARTED || tm->ntm_state == M0_NET_TM_STOPPING;
  if (runs && !tm->ntm_bev_auto_deliver) return true;
  refuse(EBADFD, "the transfer machine is not started, or delivers by itself");
  return false;
}

}  // namespace

int m0_net_buffer_event_deliver_synchronously(m0_net_transfer_mc* tm) {
  return configure(tm, [&] {
    const auto choose = ops_of(tm).xo_bev_deliver_sync;
    if (choose == nullptr) return refuse(ENOSYS, "the transport delivers by itself alone");
    const int error = choose(tm);
    if (error == 0) tm->ntm_bev_auto_deliver = false;
    return error;
  });
}

void m0_net_buffer_event_deliver_all(m0_net_transfer_mc* tm) {
  if (!is_alive(tm)) return;
  const Locked lock(tm->ntm_mutex);
  if (is_delivering(tm)) ops_of(tm).xo_bev_deliver_all(tm);
}

bool m0_net_buffer_event_pending(m0_net_transfer_mc* tm) {
  if (!is_alive(tm)) return false;
  const Locked lock(tm->ntm_mutex);
  return is_delivering(tm) && ops_of(tm).xo_bev_pending(tm);
}

void m0_net_buffer_event_notify(m0_net_transfer_mc* tm, m0_chan* chan) {
  if (!is_alive(tm)) return;
  if (chan == nullptr) {
    refuse(EINVAL, "no channel");
    return;
  }
  const Locked lock(tm->ntm_mutex);
  if (is_delivering(tm)) ops_of(tm).xo_bev_notify(tm, chan);
}
