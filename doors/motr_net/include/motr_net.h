/* Motr's network interface over Fairlead (docs/motr.md): the names and numbers of Motr's net layer, for programs
 * written for it. Implemented over <fairlead/net.h>. C11 and C++.
 *
 * Errors. Calls that return int return 0 or a negative errno, unless described otherwise. Where Motr asserts a
 * precondition, this library refuses the call and changes nothing: it returns -EINVAL for arguments and -EBADFD for
 * states. Calls without a result then do nothing. m0_net_last_error() returns the reason in one line.
 *
 * Threads. Thread rules and states are Motr's. Any thread may make any call, also in a callback. A transfer machine's
 * mutex is held in no callback.
 *
 * Units. Lengths are in bytes, times in nanoseconds of the monotonic clock. */
#ifndef FAIRLEAD_MOTR_NET_H
#define FAIRLEAD_MOTR_NET_H

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- errors */

/* Returns why this thread's last refused call was refused; empty if none was. Valid until the next refused call. */
const char* m0_net_last_error(void);

/* ---- lib: numbers, time, vectors, bitmaps */

typedef uint64_t m0_bcount_t;
typedef uint64_t m0_bindex_t;
typedef uint64_t m0_time_t; /* nanoseconds of CLOCK_MONOTONIC */

#define M0_TIME_NEVER UINT64_MAX
#define M0_TIME_IMMEDIATELY ((m0_time_t)0)
#define M0_TIME_ONE_SECOND ((m0_time_t)1000000000)
#define M0_TIME_ONE_MSEC ((m0_time_t)1000000)

m0_time_t m0_time_now(void);
m0_time_t m0_time(uint64_t seconds, long ns);
m0_time_t m0_time_from_now(uint64_t seconds, long ns);
/* M0_TIME_NEVER plus or minus a time remains M0_TIME_NEVER. */
m0_time_t m0_time_add(m0_time_t a, m0_time_t b);
m0_time_t m0_time_sub(m0_time_t a, m0_time_t b);
/* The whole seconds of a time, and the nanoseconds beyond them. */
uint64_t m0_time_seconds(m0_time_t time);
uint64_t m0_time_nanoseconds(m0_time_t time);
bool m0_time_is_in_past(m0_time_t time);

struct m0_vec {
  uint32_t v_nr;
  m0_bcount_t* v_count;
};
/* Returns the sum of the lengths. */
m0_bcount_t m0_vec_count(const struct m0_vec* vec);

/* A scatter list: segment i is the ov_vec.v_count[i] bytes at ov_buf[i]. */
struct m0_bufvec {
  struct m0_vec ov_vec;
  void** ov_buf;
};
/* Allocates `segments` zeroed segments of `segment_size` bytes. -ENOMEM; -EINVAL if either is 0. */
int m0_bufvec_alloc(struct m0_bufvec* bufvec, uint32_t segments, m0_bcount_t segment_size);
/* The same; segments begin at multiples of 2^shift. `shift` is at most 30. */
int m0_bufvec_alloc_aligned(struct m0_bufvec* bufvec, uint32_t segments, m0_bcount_t segment_size, unsigned shift);
void m0_bufvec_free(struct m0_bufvec* bufvec);
void m0_bufvec_free_aligned(struct m0_bufvec* bufvec, unsigned shift);

/* A position in a scatter list. */
struct m0_bufvec_cursor {
  const struct m0_bufvec* bc_vec;
  uint32_t bc_segment;
  m0_bcount_t bc_offset;
};
void m0_bufvec_cursor_init(struct m0_bufvec_cursor* cursor, const struct m0_bufvec* bufvec);
/* Moves forward by `bytes`. Returns true at the end. */
bool m0_bufvec_cursor_move(struct m0_bufvec_cursor* cursor, m0_bcount_t bytes);
/* Returns the number of bytes left in the segment; 0 at the end. */
m0_bcount_t m0_bufvec_cursor_step(const struct m0_bufvec_cursor* cursor);
/* Returns the address of the next byte; null at the end. */
void* m0_bufvec_cursor_addr(struct m0_bufvec_cursor* cursor);
/* Copy across segments of different lengths, until one side ends. Return the number of bytes copied, and move the
 * cursors by it. */
m0_bcount_t m0_bufvec_cursor_copy(struct m0_bufvec_cursor* to, struct m0_bufvec_cursor* from, m0_bcount_t bytes);
m0_bcount_t m0_bufvec_cursor_copyto(struct m0_bufvec_cursor* to, void* from, m0_bcount_t bytes);
m0_bcount_t m0_bufvec_cursor_copyfrom(struct m0_bufvec_cursor* from, void* to, m0_bcount_t bytes);

/* b_nr bits, initially 0. Bits beyond them read as false; setting one is refused. */
struct m0_bitmap {
  size_t b_nr;
  uint64_t* b_words;
};
int m0_bitmap_init(struct m0_bitmap* map, size_t bits);
void m0_bitmap_fini(struct m0_bitmap* map);
bool m0_bitmap_get(const struct m0_bitmap* map, size_t bit);
void m0_bitmap_set(struct m0_bitmap* map, size_t bit, bool value);

/* ---- lib: mutexes, channels */

struct m0_mutex {
  pthread_mutex_t m_impl;
  pthread_t m_owner;
  bool m_is_locked;
};
void m0_mutex_init(struct m0_mutex* mutex);
void m0_mutex_fini(struct m0_mutex* mutex);
void m0_mutex_lock(struct m0_mutex* mutex);
void m0_mutex_unlock(struct m0_mutex* mutex);
/* Returns whether the calling thread holds the mutex. */
bool m0_mutex_is_locked(const struct m0_mutex* mutex);

/* A channel wakes the links that wait on it. Calls without _lock require that the caller holds ch_guard; those with
 * _lock lock it. */
struct m0_clink;
struct m0_chan {
  struct m0_mutex* ch_guard;
  struct m0_clink* ch_first;
};
/* Runs in the signalling thread. Returns true if it has consumed the event, so that the link is not woken. */
typedef bool (*m0_chan_cb_t)(struct m0_clink* link);
struct m0_clink {
  m0_chan_cb_t cl_cb;
  struct m0_chan* cl_chan;
  struct m0_clink* cl_next;
  sem_t cl_wait;
};
void m0_chan_init(struct m0_chan* chan, struct m0_mutex* guard);
void m0_chan_fini(struct m0_chan* chan);
void m0_chan_fini_lock(struct m0_chan* chan);
/* Signals the link that was added first. */
void m0_chan_signal(struct m0_chan* chan);
void m0_chan_signal_lock(struct m0_chan* chan);
/* Signals all links, in the order in which they were added. */
void m0_chan_broadcast(struct m0_chan* chan);
void m0_chan_broadcast_lock(struct m0_chan* chan);
void m0_clink_init(struct m0_clink* link, m0_chan_cb_t callback);
void m0_clink_fini(struct m0_clink* link);
void m0_clink_add(struct m0_chan* chan, struct m0_clink* link);
void m0_clink_add_lock(struct m0_chan* chan, struct m0_clink* link);
void m0_clink_del(struct m0_clink* link);
void m0_clink_del_lock(struct m0_clink* link);
bool m0_clink_is_armed(const struct m0_clink* link);
/* Waits for a signal of the link, and takes it. */
void m0_chan_wait(struct m0_clink* link);
/* Takes a signal if there is one. Returns whether there was. */
bool m0_chan_trywait(struct m0_clink* link);
/* Waits for a signal, and takes it. Returns false if none has come by the time `until`. */
bool m0_chan_timedwait(struct m0_clink* link, m0_time_t until);

/* ---- transports */

struct m0_net_xprt;
struct m0_net_domain;
struct m0_net_transfer_mc;
struct m0_net_end_point;
struct m0_net_buffer;
struct m0_net_buffer_pool;

/* The operations of a transport. The caller holds the domain's mutex for xo_buf_register, xo_buf_deregister, xo_tm_init
 * and xo_tm_fini, no mutex for xo_dom_*, xo_get_* and xo_rpc_*, and otherwise the transfer machine's mutex. Those from
 * xo_tm_confine on may be null, but the other xo_bev_ operations only if xo_bev_deliver_sync is. */
struct m0_net_xprt_ops {
  int (*xo_dom_init)(const struct m0_net_xprt* xprt, struct m0_net_domain* dom);
  void (*xo_dom_fini)(struct m0_net_domain* dom);
  m0_bcount_t (*xo_get_max_buffer_size)(const struct m0_net_domain* dom);
  m0_bcount_t (*xo_get_max_buffer_segment_size)(const struct m0_net_domain* dom);
  int32_t (*xo_get_max_buffer_segments)(const struct m0_net_domain* dom);
  m0_bcount_t (*xo_get_max_buffer_desc_size)(const struct m0_net_domain* dom);
  int (*xo_end_point_create)(struct m0_net_end_point** epp, struct m0_net_transfer_mc* tm, const char* addr);
  int (*xo_buf_register)(struct m0_net_buffer* nb);
  void (*xo_buf_deregister)(struct m0_net_buffer* nb);
  int (*xo_buf_add)(struct m0_net_buffer* nb);
  void (*xo_buf_del)(struct m0_net_buffer* nb);
  int (*xo_tm_init)(struct m0_net_transfer_mc* tm);
  int (*xo_tm_start)(struct m0_net_transfer_mc* tm, const char* addr);
  int (*xo_tm_stop)(struct m0_net_transfer_mc* tm, bool cancel);
  void (*xo_tm_fini)(struct m0_net_transfer_mc* tm);
  int (*xo_tm_confine)(struct m0_net_transfer_mc* tm, const struct m0_bitmap* processors);
  int (*xo_bev_deliver_sync)(struct m0_net_transfer_mc* tm);
  void (*xo_bev_deliver_all)(struct m0_net_transfer_mc* tm);
  bool (*xo_bev_pending)(struct m0_net_transfer_mc* tm);
  void (*xo_bev_notify)(struct m0_net_transfer_mc* tm, struct m0_chan* chan);
  m0_bcount_t (*xo_rpc_max_seg_size)(struct m0_net_domain* dom);
  uint32_t (*xo_rpc_max_segs_nr)(struct m0_net_domain* dom);
  m0_bcount_t (*xo_rpc_max_msg_size)(struct m0_net_domain* dom, m0_bcount_t rpc_size);
  uint32_t (*xo_rpc_max_recv_msgs)(struct m0_net_domain* dom, m0_bcount_t rpc_size);
};

struct m0_net_xprt {
  const char* nx_name;
  const struct m0_net_xprt_ops* nx_ops;
};

enum { M0_NET_XPRT_MAX = 4 };
/* Fairlead's transport. m0_net_init() registers it, and makes it the default. */
extern const struct m0_net_xprt m0_net_lnet_xprt;

/* Calls of init and fini nest. */
int m0_net_init(void);
void m0_net_fini(void);
/* Refuses a transport that is registered already, and one beyond M0_NET_XPRT_MAX. */
void m0_net_xprt_register(const struct m0_net_xprt* xprt);
void m0_net_xprt_deregister(const struct m0_net_xprt* xprt);
void m0_net_xprt_default_set(const struct m0_net_xprt* xprt);
const struct m0_net_xprt* m0_net_xprt_default_get(void);
/* Returns the number of transports, and stores them in `xprts`, unless null. It has room for M0_NET_XPRT_MAX. */
int m0_net_xprts_get(const struct m0_net_xprt** xprts);
/* Writes the transports' names to standard output, one per line. */
void m0_net_print_xprt(void);

/* ---- domains */

struct m0_net_domain {
  const struct m0_net_xprt* nd_xprt; /* null: not initialised */
  void* nd_xprt_private;
  struct m0_mutex nd_mutex;
  struct m0_net_transfer_mc* nd_tms;
  uint64_t nd_registered; /* buffers */
  m0_bcount_t nd_get_max_buffer_size;
  m0_bcount_t nd_get_max_buffer_segment_size;
  int32_t nd_get_max_buffer_segments;
};
int m0_net_domain_init(struct m0_net_domain* dom, const struct m0_net_xprt* xprt);
/* Refused while the domain has transfer machines or registered buffers. */
void m0_net_domain_fini(struct m0_net_domain* dom);
/* The limits of a buffer: bytes, bytes of a segment, segments; and the size of a descriptor. */
m0_bcount_t m0_net_domain_get_max_buffer_size(struct m0_net_domain* dom);
m0_bcount_t m0_net_domain_get_max_buffer_segment_size(struct m0_net_domain* dom);
int32_t m0_net_domain_get_max_buffer_segments(struct m0_net_domain* dom);
m0_bcount_t m0_net_domain_get_max_buffer_desc_size(struct m0_net_domain* dom);
/* The values that an RPC layer should use: bytes of a segment, segments, bytes of a message, messages in a buffer. */
m0_bcount_t m0_net_domain_rpc_max_seg_size(struct m0_net_domain* dom);
uint32_t m0_net_domain_rpc_max_segs_nr(struct m0_net_domain* dom);
m0_bcount_t m0_net_domain_rpc_max_msg_size(struct m0_net_domain* dom, m0_bcount_t rpc_size);
uint32_t m0_net_domain_rpc_max_recv_msgs(struct m0_net_domain* dom, m0_bcount_t rpc_size);

/* ---- transfer machines */

enum m0_net_tm_state {
  M0_NET_TM_UNDEFINED = 0,
  M0_NET_TM_INITIALIZED,
  M0_NET_TM_STARTING,
  M0_NET_TM_STARTED,
  M0_NET_TM_STOPPING,
  M0_NET_TM_STOPPED,
  M0_NET_TM_FAILED
};

enum m0_net_tm_ev_type { M0_NET_TEV_ERROR = 0, M0_NET_TEV_STATE_CHANGE, M0_NET_TEV_DIAGNOSTIC, M0_NET_TEV_NR };

struct m0_net_tm_event {
  enum m0_net_tm_ev_type nte_type;
  struct m0_net_transfer_mc* nte_tm;
  m0_time_t nte_time;
  int32_t nte_status;
  enum m0_net_tm_state nte_next_state;
  struct m0_net_end_point* nte_ep; /* with STARTED: the machine's own end point */
  void* nte_payload;               /* DIAGNOSTIC: const char *, a line of text */
};
struct m0_net_tm_callbacks {
  void (*ntc_event_cb)(const struct m0_net_tm_event* ev);
};

enum m0_net_queue_type {
  M0_NET_QT_MSG_RECV = 0,
  M0_NET_QT_MSG_SEND,
  M0_NET_QT_PASSIVE_BULK_RECV,
  M0_NET_QT_PASSIVE_BULK_SEND,
  M0_NET_QT_ACTIVE_BULK_RECV,
  M0_NET_QT_ACTIVE_BULK_SEND,
  M0_NET_QT_NR
};

struct m0_net_qstats {
  uint64_t nqs_num_adds;
  uint64_t nqs_num_dels;       /* requests to cancel */
  uint64_t nqs_num_s_events;   /* successful */
  uint64_t nqs_num_f_events;   /* failed */
  m0_time_t nqs_time_in_queue; /* sum over completed buffers */
  uint64_t nqs_total_bytes;    /* of successful events */
  uint64_t nqs_max_bytes;
};

/* A list of buffers, or of end points. */
struct m0_tl {
  void* tl_first;
  void* tl_last;
  uint64_t tl_length;
};
bool m0_net_tm_tlist_is_empty(const struct m0_tl* list);
uint64_t m0_net_tm_tlist_length(const struct m0_tl* list);

struct m0_net_buffer_event;
typedef void (*m0_net_buffer_cb_proc_t)(const struct m0_net_buffer_event* ev);
struct m0_net_buffer_callbacks {
  m0_net_buffer_cb_proc_t nbc_cb[M0_NET_QT_NR];
};

enum { M0_NET_TM_RECV_QUEUE_DEF_LEN = 2 };
#define M0_BUFFER_ANY_COLOUR UINT32_MAX

/* Before m0_net_tm_init() everything must be 0 except ntm_callbacks. */
struct m0_net_transfer_mc {
  const struct m0_net_tm_callbacks* ntm_callbacks;
  enum m0_net_tm_state ntm_state;
  struct m0_net_domain* ntm_dom;
  struct m0_net_transfer_mc* ntm_next; /* in the domain's list */
  uint32_t ntm_callback_counter;
  struct m0_tl ntm_end_points;
  struct m0_net_end_point* ntm_ep; /* the machine's own end point, from STARTED on */
  struct m0_mutex ntm_mutex;
  struct m0_chan ntm_chan; /* broadcast when no callback runs any more, also after a change of state */
  struct m0_tl ntm_q[M0_NET_QT_NR];
  struct m0_net_qstats ntm_qstats[M0_NET_QT_NR];
  void* ntm_xprt_private;
  bool ntm_bev_auto_deliver;
  bool ntm_stop_pending; /* m0_net_tm_stop() was called while STARTING */
  struct m0_net_buffer_pool* ntm_recv_pool;
  const struct m0_net_buffer_callbacks* ntm_recv_pool_callbacks;
  uint32_t ntm_recv_queue_min_length;
  m0_bcount_t ntm_recv_queue_min_recv_size;
  uint32_t ntm_recv_queue_max_recv_msgs;
  uint64_t ntm_recv_queue_deficit;
  uint32_t ntm_pool_colour;
};

int m0_net_tm_init(struct m0_net_transfer_mc* tm, struct m0_net_domain* dom);
/* Waits until no callback runs. Refused in a callback of the machine itself, and unless the machine is INITIALIZED,
 * STOPPED or FAILED. Also refused while it has buffers, or while the application holds references to its end points. */
void m0_net_tm_fini(struct m0_net_transfer_mc* tm);
/* Binds the machine's thread to these processors, before the start. -ENOSYS if the transport cannot. */
int m0_net_tm_confine(struct m0_net_transfer_mc* tm, const struct m0_bitmap* processors);
/* Starts the machine at this address (docs/motr.md). An event reports STARTED, or FAILED with the cause. */
int m0_net_tm_start(struct m0_net_transfer_mc* tm, const char* addr);
/* Stops the machine: waits for its buffers, or cancels them if `abort`. An event reports STOPPED. */
int m0_net_tm_stop(struct m0_net_transfer_mc* tm, bool abort);
/* Copies the statistics of a queue to `qs`, unless null; M0_NET_QT_NR: of all queues, to an array. `reset` then sets
 * them to 0. */
int m0_net_tm_stats_get(struct m0_net_transfer_mc* tm, enum m0_net_queue_type qtype, struct m0_net_qstats* qs,
                        bool reset);
/* Makes the machine receive messages into buffers of the pool, before the start. Lengths below
 * M0_NET_TM_RECV_QUEUE_DEF_LEN have no effect. */
int m0_net_tm_pool_attach(struct m0_net_transfer_mc* tm, struct m0_net_buffer_pool* bufpool,
                          const struct m0_net_buffer_callbacks* callbacks, m0_bcount_t min_recv_size,
                          uint32_t max_recv_msgs, uint32_t min_recv_queue_len);
void m0_net_tm_pool_length_set(struct m0_net_transfer_mc* tm, uint32_t len);
void m0_net_tm_colour_set(struct m0_net_transfer_mc* tm, uint32_t colour);
uint32_t m0_net_tm_colour_get(struct m0_net_transfer_mc* tm);
/* For transports: delivers an event of the machine. The caller must not hold the machine's mutex. */
void m0_net_tm_event_post(const struct m0_net_tm_event* ev);

/* ---- end points */

struct m0_ref {
  int64_t ref_cnt;
  void (*release)(struct m0_ref* ref); /* of the transport; called with the transfer machine's mutex held */
};
struct m0_net_end_point {
  struct m0_ref nep_ref;
  struct m0_net_transfer_mc* nep_tm;
  struct m0_net_end_point* nep_next;
  const char* nep_addr;
  void* nep_xprt_private;
};
/* Stores a reference to the end point of this address; there is one object per address. -EBADFD unless STARTED. */
int m0_net_end_point_create(struct m0_net_end_point** epp, struct m0_net_transfer_mc* tm, const char* addr);
/* Adds a reference. */
void m0_net_end_point_get(struct m0_net_end_point* ep);
/* Releases a reference. Locks the transfer machine's mutex. */
void m0_net_end_point_put(struct m0_net_end_point* ep);

/* ---- buffers */

enum m0_net_buf_flags {
  M0_NET_BUF_REGISTERED = 1,
  M0_NET_BUF_QUEUED = 2,
  M0_NET_BUF_IN_USE = 4,
  M0_NET_BUF_CANCELLED = 8,
  M0_NET_BUF_TIMED_OUT = 16,
  M0_NET_BUF_RETAIN = 32
};

/* A descriptor names a passive buffer. m0_net_desc_free() frees its bytes. */
struct m0_net_buf_desc {
  uint32_t nbd_len;
  uint8_t* nbd_data;
};
struct m0_net_buf_desc_data {
  struct m0_net_buf_desc bdd_desc;
  uint64_t bdd_used;
};
int m0_net_desc_copy(const struct m0_net_buf_desc* from_desc, struct m0_net_buf_desc* to_desc);
void m0_net_desc_free(struct m0_net_buf_desc* desc);

struct m0_net_buffer {
  /* Set by the application. */
  struct m0_bufvec nb_buffer;
  enum m0_net_queue_type nb_qtype;
  const struct m0_net_buffer_callbacks* nb_callbacks;
  m0_bcount_t nb_length;
  m0_bcount_t nb_offset;
  struct m0_net_buf_desc nb_desc; /* active: input; passive: each add makes one, which the application frees */
  struct m0_net_end_point* nb_ep;
  m0_time_t nb_timeout; /* deadline; M0_TIME_NEVER after registration and after each final event */
  m0_bcount_t nb_min_receive_size;
  uint32_t nb_max_receive_msgs;
  void* nb_app_private;
  /* Set by the library. */
  struct m0_net_domain* nb_dom;
  struct m0_net_transfer_mc* nb_tm;
  uint64_t nb_flags;
  m0_time_t nb_add_time;
  uint32_t nb_msgs_received;
  struct m0_net_buffer_pool* nb_pool;
  uint32_t nb_pool_colour;
  bool nb_is_pooled; /* the buffer is in its pool */
  struct m0_net_buffer* nb_next;
  struct m0_net_buffer* nb_prev;
  void* nb_xprt_private;
};

struct m0_net_buffer_event {
  struct m0_net_buffer* nbe_buffer;
  m0_time_t nbe_time;
  int32_t nbe_status;
  m0_bcount_t nbe_length;          /* bytes received, if an operation of a receive queue succeeded */
  m0_bindex_t nbe_offset;          /* MSG_RECV, successful: offset of the message in the buffer */
  struct m0_net_end_point* nbe_ep; /* MSG_RECV, successful: the sender. Get a reference to keep it */
};

int m0_net_buffer_register(struct m0_net_buffer* buf, struct m0_net_domain* dom);
void m0_net_buffer_deregister(struct m0_net_buffer* buf, struct m0_net_domain* dom);
/* Queues a buffer at nb_qtype. Success guarantees one final event. -ETIME: nb_timeout has passed; -EINVAL; -EBADFD. */
int m0_net_buffer_add(struct m0_net_buffer* buf, struct m0_net_transfer_mc* tm);
/* Cancels. Returns false if the buffer is not, or no longer, queued there; true if its final event still follows. */
bool m0_net_buffer_del(struct m0_net_buffer* buf, struct m0_net_transfer_mc* tm);
/* For transports: delivers an event of a buffer. The caller must not hold the machine's mutex. */
void m0_net_buffer_event_post(const struct m0_net_buffer_event* ev);

/* ---- synchronous delivery; refused unless the machine is STARTED or STOPPING, and delivers synchronously */

/* Selects synchronous delivery, before the start. */
int m0_net_buffer_event_deliver_synchronously(struct m0_net_transfer_mc* tm);
/* Delivers all pending events in the calling thread. */
void m0_net_buffer_event_deliver_all(struct m0_net_transfer_mc* tm);
bool m0_net_buffer_event_pending(struct m0_net_transfer_mc* tm);
/* Signals the channel once, as soon as an event is pending. */
void m0_net_buffer_event_notify(struct m0_net_transfer_mc* tm, struct m0_chan* chan);

/* ---- buffer pools */

struct m0_net_buffer_pool_ops {
  /* Called with the pool locked, when a buffer was put into the empty pool. */
  void (*nbpo_not_empty)(struct m0_net_buffer_pool* pool);
  /* Called with the pool locked, when a get leaves fewer than nbp_threshold buffers. */
  void (*nbpo_below_threshold)(struct m0_net_buffer_pool* pool);
};
enum { M0_NET_BUFFER_POOL_THRESHOLD = 2 };

struct m0_net_buffer_pool {
  const struct m0_net_buffer_pool_ops* nbp_ops;
  uint32_t nbp_free; /* buffers in the pool */
  uint32_t nbp_threshold;
  uint32_t nbp_buf_nr; /* all buffers of the pool */
  uint32_t nbp_seg_nr; /* segments of a buffer */
  m0_bcount_t nbp_seg_size;
  unsigned nbp_align; /* log2 of the alignment of segments */
  struct m0_net_domain* nbp_ndom;
  uint32_t nbp_colours_nr;
  struct m0_mutex nbp_mutex;
  void* nbp_private;
};
/* Makes an empty pool, with the callbacks that nbp_ops has before. `shift` is nbp_align; `dont_dump` has no effect.
 * -EINVAL: buffers without bytes, or more than 1024 colours; -EBADFD; -ENOMEM. */
int m0_net_buffer_pool_init(struct m0_net_buffer_pool* pool, struct m0_net_domain* ndom, uint32_t threshold,
                            uint32_t seg_nr, m0_bcount_t seg_size, uint32_t colours, unsigned shift, bool dont_dump);
/* Frees the pool and its buffers. Refused while a buffer is not in the pool. */
void m0_net_buffer_pool_fini(struct m0_net_buffer_pool* pool);
void m0_net_buffer_pool_lock(struct m0_net_buffer_pool* pool);
void m0_net_buffer_pool_unlock(struct m0_net_buffer_pool* pool);
bool m0_net_buffer_pool_is_locked(const struct m0_net_buffer_pool* pool);
/* The calls that follow require that the calling thread has locked the pool. */
/* Adds `buf_nr` new buffers. Returns how many it could make. */
int m0_net_buffer_pool_provision(struct m0_net_buffer_pool* pool, uint32_t buf_nr);
/* Frees the least recently used buffer. Returns false if at most nbp_threshold buffers are left. */
bool m0_net_buffer_pool_prune(struct m0_net_buffer_pool* pool);
/* Takes a buffer, preferably of that colour. Returns null if the pool is empty or has no such colour. */
struct m0_net_buffer* m0_net_buffer_pool_get(struct m0_net_buffer_pool* pool, uint32_t colour);
/* Returns a buffer of this pool that is idle: from a get, or after its final event. */
void m0_net_buffer_pool_put(struct m0_net_buffer_pool* pool, struct m0_net_buffer* buf, uint32_t colour);
/* For nbpo_not_empty: transfer machines of the domain take the buffers that they lack. */
void m0_net_domain_buffer_pool_not_empty(struct m0_net_buffer_pool* pool);

/* ---- addresses of this transport */

enum { M0_NET_LNET_XEP_ADDR_LEN = 80, M0_NET_LNET_NIDSTR_SIZE = 32 };

/* Orders addresses by their nid: < 0, 0 or > 0. Ignores the names of networks. -1 if an address is malformed. */
int m0_net_lnet_ep_addr_net_cmp(const char* addr1, const char* addr2);
/* Stores the nids of this host in *addrs, an array that ends with a null. Free it with m0_net_lnet_ifaces_put().
 * -ENOMEM. */
int m0_net_lnet_ifaces_get(struct m0_net_domain* dom, char* const** addrs);
void m0_net_lnet_ifaces_put(struct m0_net_domain* dom, char* const** addrs);

#ifdef __cplusplus
}
#endif

#endif
