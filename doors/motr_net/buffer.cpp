// Buffers and their completions, independent of the transport.

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "doors/motr_net/include/motr_net.h"
#include "doors/motr_net/lists.hpp"
#include "doors/motr_net/refuse.hpp"

using fairlead::motr::append;
using fairlead::motr::callback_returned;
using fairlead::motr::clear_flags;
using fairlead::motr::flags_of;
using fairlead::motr::InCallback;
using fairlead::motr::is_any_null;
using fairlead::motr::Locked;
using fairlead::motr::refuse;
using fairlead::motr::remove;
using fairlead::motr::set_flags;

namespace {

constexpr std::uint64_t kBusy =
    M0_NET_BUF_QUEUED | M0_NET_BUF_IN_USE | M0_NET_BUF_CANCELLED | M0_NET_BUF_TIMED_OUT | M0_NET_BUF_RETAIN;

/// Claims an idle buffer. Of several concurrent callers, one succeeds.
bool exchange_idle(m0_net_buffer& buf, std::uint64_t flags) {
  std::uint64_t idle = M0_NET_BUF_REGISTERED;
  return __atomic_compare_exchange_n(&buf.nb_flags, &idle, flags, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}
bool is_of(const m0_net_buffer& buf, const m0_net_transfer_mc* tm) {
  return __atomic_load_n(&buf.nb_tm, __ATOMIC_RELAXED) == tm;
}

const m0_net_xprt_ops& ops_of(const m0_net_buffer* buf) {
  return *buf->nb_dom->nd_xprt->nx_ops;
}

bool is_receive(m0_net_queue_type queue) {
  return queue == M0_NET_QT_MSG_RECV || queue == M0_NET_QT_PASSIVE_BULK_RECV || queue == M0_NET_QT_ACTIVE_BULK_RECV;
}
bool is_passive(m0_net_queue_type queue) {
  return queue == M0_NET_QT_PASSIVE_BULK_RECV || queue == M0_NET_QT_PASSIVE_BULK_SEND;
}
bool is_active(m0_net_queue_type queue) {
  return queue == M0_NET_QT_ACTIVE_BULK_RECV || queue == M0_NET_QT_ACTIVE_BULK_SEND;
}

/// Returns why the buffer's fields do not suit its queue; null if they do.
const char* objection_to_fields(const m0_net_buffer& buf, const m0_net_transfer_mc& tm) {
  const m0_bcount_t size = m0_vec_count(&buf.nb_buffer.ov_vec);
  if (buf.nb_qtype >= M0_NET_QT_NR) return "there is no such queue (nb_qtype)";
  if (buf.nb_callbacks == nullptr || buf.nb_callbacks->nbc_cb[buf.nb_qtype] == nullptr)
    return "the buffer has no callback for this queue (nb_callbacks)";
  if (buf.nb_qtype == M0_NET_QT_MSG_RECV) {
    if (buf.nb_ep != nullptr) return "a buffer that receives messages has no end point (nb_ep)";
    if (buf.nb_min_receive_size == 0 || buf.nb_min_receive_size > size)
      return "nb_min_receive_size is not in 1..size of the buffer";
    return buf.nb_max_receive_msgs == 0 ? "nb_max_receive_msgs is 0" : nullptr;
  }
  if (!is_receive(buf.nb_qtype)) {
    if (buf.nb_length == 0 || buf.nb_length > size) return "nb_length is not in 1..size of the buffer";
    if (buf.nb_offset != 0) return "nb_offset is not 0";
  }
  if (buf.nb_qtype == M0_NET_QT_MSG_SEND && (buf.nb_ep == nullptr || buf.nb_ep->nep_tm != &tm))
    return "nb_ep is no end point of this transfer machine";
  if (is_active(buf.nb_qtype) && (buf.nb_desc.nbd_data == nullptr || buf.nb_desc.nbd_len == 0))
    return "nb_desc is empty";
  return nullptr;
}

void account(m0_net_qstats& figures, const m0_net_buffer& buf, const m0_net_buffer_event& ev, bool is_final) {
  if (is_final) figures.nqs_time_in_queue += m0_time_sub(std::max(ev.nbe_time, buf.nb_add_time), buf.nb_add_time);
  if (ev.nbe_status != 0) {
    ++figures.nqs_num_f_events;
    return;
  }
  const uint64_t bytes = is_receive(buf.nb_qtype) ? ev.nbe_length : buf.nb_length;
  ++figures.nqs_num_s_events;
  figures.nqs_total_bytes += bytes;
  figures.nqs_max_bytes = std::max(figures.nqs_max_bytes, bytes);
}

/// Queues a claimed buffer. The caller holds the machine's mutex.
int queue_claimed(m0_net_buffer* buf, m0_net_transfer_mc* tm) {
  if (const char* const why = objection_to_fields(*buf, *tm); why != nullptr) return refuse(EINVAL, why);
  const m0_time_t now = m0_time_now();
  if (buf->nb_timeout < now) return refuse(ETIME, "nb_timeout has passed");
  if (is_passive(buf->nb_qtype)) buf->nb_desc = {};  // the application owns the old descriptor
  const m0_net_queue_type queue = buf->nb_qtype;
  append(tm->ntm_q[queue], *buf);
  buf->nb_add_time = now;
  buf->nb_msgs_received = 0;
  __atomic_store_n(&buf->nb_tm, tm, __ATOMIC_RELAXED);
  __atomic_store_n(&buf->nb_flags, std::uint64_t{M0_NET_BUF_REGISTERED | M0_NET_BUF_QUEUED}, __ATOMIC_RELEASE);
  if (const int error = ops_of(buf).xo_buf_add(buf); error != 0) {
    remove(tm->ntm_q[queue], *buf);
    return error;
  }
  ++tm->ntm_qstats[queue].nqs_num_adds;
  if (queue == M0_NET_QT_MSG_SEND) m0_net_end_point_get(buf->nb_ep);
  return 0;
}

}  // namespace

// Descriptors -------------------------------------------------------------------------------------------------------

int m0_net_desc_copy(const m0_net_buf_desc* from_desc, m0_net_buf_desc* to_desc) {
  if (from_desc == nullptr || to_desc == nullptr) return refuse(EINVAL, "no descriptor");
  *to_desc = {};
  if (from_desc->nbd_len == 0 || from_desc->nbd_data == nullptr) return refuse(EINVAL, "an empty descriptor");
  auto* const data = static_cast<uint8_t*>(std::malloc(from_desc->nbd_len));
  if (data == nullptr) return refuse(ENOMEM, "no memory for a descriptor");
  std::memcpy(data, from_desc->nbd_data, from_desc->nbd_len);
  *to_desc = {from_desc->nbd_len, data};
  return 0;
}

void m0_net_desc_free(m0_net_buf_desc* desc) {
  if (desc == nullptr) return;
  std::free(desc->nbd_data);
  *desc = {};
}

// Registration ------------------------------------------------------------------------------------------------------

int m0_net_buffer_register(m0_net_buffer* buf, m0_net_domain* dom) {
  if (buf == nullptr || dom == nullptr) return refuse(EINVAL, "no buffer, or no domain");
  if (dom->nd_xprt == nullptr) return refuse(EBADFD, "the domain is not initialised");
  if (flags_of(*buf) != 0 || buf->nb_dom != nullptr) return refuse(EBADFD, "the buffer is registered already");
  const m0_bufvec& vec = buf->nb_buffer;
  if (vec.ov_buf == nullptr || vec.ov_vec.v_count == nullptr || m0_vec_count(&vec.ov_vec) == 0)
    return refuse(EINVAL, "the buffer has no memory (nb_buffer)");
  const Locked lock(dom->nd_mutex);
  buf->nb_dom = dom;
  buf->nb_tm = nullptr;
  buf->nb_timeout = M0_TIME_NEVER;
  if (const int error = ops_of(buf).xo_buf_register(buf); error != 0) {
    buf->nb_dom = nullptr;
    return error;
  }
  set_flags(*buf, M0_NET_BUF_REGISTERED);
  ++dom->nd_registered;
  return 0;
}

void m0_net_buffer_deregister(m0_net_buffer* buf, m0_net_domain* dom) {
  if (buf == nullptr || dom == nullptr || buf->nb_dom != dom || !exchange_idle(*buf, 0)) {
    refuse(EBADFD, "the buffer is not registered there, or is queued");
    return;
  }
  const Locked lock(dom->nd_mutex);
  ops_of(buf).xo_buf_deregister(buf);
  buf->nb_dom = nullptr;
  buf->nb_tm = nullptr;
  --dom->nd_registered;
}

// Queues ------------------------------------------------------------------------------------------------------------

int m0_net_buffer_add(m0_net_buffer* buf, m0_net_transfer_mc* tm) {
  if (buf == nullptr || tm == nullptr) return refuse(EINVAL, "no buffer, or no transfer machine");
  if (tm->ntm_dom == nullptr) return refuse(EBADFD, "the transfer machine is not initialised");
  const Locked lock(tm->ntm_mutex);
  if (tm->ntm_state != M0_NET_TM_STARTED) return refuse(EBADFD, "the transfer machine is not started");
  if (buf->nb_dom != tm->ntm_dom) return refuse(EINVAL, "the buffer is not registered with the machine's domain");
  // Another machine uses another mutex, so claim the buffer before reading any of its fields.
  if (!exchange_idle(*buf, M0_NET_BUF_REGISTERED | M0_NET_BUF_IN_USE)) return refuse(EBADFD, "the buffer is queued");
  const int error = queue_claimed(buf, tm);
  if (error != 0) clear_flags(*buf, M0_NET_BUF_IN_USE | M0_NET_BUF_QUEUED);
  return error;
}

bool m0_net_buffer_del(m0_net_buffer* buf, m0_net_transfer_mc* tm) {
  if (buf == nullptr || tm == nullptr || tm->ntm_dom == nullptr) return false;
  const Locked lock(tm->ntm_mutex);
  if ((flags_of(*buf) & M0_NET_BUF_QUEUED) == 0 || !is_of(*buf, tm)) return false;
  set_flags(*buf, M0_NET_BUF_CANCELLED);
  ++tm->ntm_qstats[buf->nb_qtype].nqs_num_dels;
  ops_of(buf).xo_buf_del(buf);
  return true;
}

void m0_net_buffer_event_post(const m0_net_buffer_event* ev) {
  if (is_any_null(ev) || is_any_null(ev->nbe_buffer)) return;
  m0_net_buffer* const buf = ev->nbe_buffer;
  if ((flags_of(*buf) & M0_NET_BUF_QUEUED) == 0) {
    refuse(EBADFD, "the buffer is not queued");
    return;
  }
  m0_net_transfer_mc* const tm = buf->nb_tm;
  const m0_net_queue_type queue = buf->nb_qtype;
  const bool is_message = queue == M0_NET_QT_MSG_RECV && ev->nbe_status == 0;
  m0_net_buffer_cb_proc_t callback = nullptr;
  m0_net_end_point* reference = is_message ? ev->nbe_ep : nullptr;
  bool wants_more = false;
  const InCallback inside(*tm);
  {
    const Locked lock(tm->ntm_mutex);
    const bool is_final = (flags_of(*buf) & M0_NET_BUF_RETAIN) == 0;
    callback = buf->nb_callbacks->nbc_cb[queue];
    account(tm->ntm_qstats[queue], *buf, *ev, is_final);
    if (is_message) ++buf->nb_msgs_received;
    if (is_final) {
      remove(tm->ntm_q[queue], *buf);
      buf->nb_timeout = M0_TIME_NEVER;
      if (queue == M0_NET_QT_MSG_SEND) reference = buf->nb_ep;
      clear_flags(*buf, kBusy);  // from here on, another machine may claim it
      wants_more = queue == M0_NET_QT_MSG_RECV && tm->ntm_recv_pool != nullptr && tm->ntm_state == M0_NET_TM_STARTED;
    } else {
      clear_flags(*buf, M0_NET_BUF_RETAIN);
    }
    ++tm->ntm_callback_counter;
  }
  if (wants_more) fairlead::motr::lock_and_provision(*tm);
  callback(ev);
  if (reference != nullptr) m0_net_end_point_put(reference);
  const Locked lock(tm->ntm_mutex);
  callback_returned(*tm);
}
