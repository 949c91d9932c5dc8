/* Motr's network interface over Fairlead (docs/motr.md): the names and numbers that programs of Motr's net layer use, on
 * <fairlead/net.h>. C11 and C++.
 *
 * Success is 0, failure a negative errno. Where Motr asserts that a caller is right, this refuses: nothing changes, calls
 * that return an int return -EINVAL or -EBADFD, and m0_net_last_error() says in one line what is wrong. Thread rules and
 * states are Motr's: a transfer machine's mutex is held in no callback, and calls are allowed there. */
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

/* Why the last call of the calling thread that was refused was; empty if none was. Valid until the next one. */
const char *m0_net_last_error(void);

/* ---- lib: numbers, time, vectors, bitmaps */

typedef uint64_t m0_bcount_t;
typedef uint64_t m0_bindex_t;
typedef uint64_t m0_time_t; /* nanoseconds of the clock that never jumps */

#define M0_TIME_NEVER UINT64_MAX
#define M0_TIME_IMMEDIATELY ((m0_time_t)0)
#define M0_TIME_ONE_SECOND ((m0_time_t)1000000000)
#define M0_TIME_ONE_MSEC ((m0_time_t)1000000)

m0_time_t m0_time_now(void);
m0_time_t m0_time(uint64_t seconds, long ns);
m0_time_t m0_time_from_now(uint64_t seconds, long ns);
/* Never stays never. */
m0_time_t m0_time_add(m0_time_t a, m0_time_t b);
m0_time_t m0_time_sub(m0_time_t a, m0_time_t b);
uint64_t m0_time_seconds(m0_time_t time);
uint64_t m0_time_nanoseconds(m0_time_t time);
bool m0_time_is_in_past(m0_time_t time);

struct m0_vec {
  uint32_t v_nr;
  m0_bcount_t *v_count;
};
m0_bcount_t m0_vec_count(const struct m0_vec *vec);

struct m0_bufvec {
  struct m0_vec ov_vec;
  void **ov_buf;
};
int m0_bufvec_alloc(struct m0_bufvec *bufvec, uint32_t segments, m0_bcount_t segment_size);
/* Segments begin at multiples of 2^shift. */
int m0_bufvec_alloc_aligned(struct m0_bufvec *bufvec, uint32_t segments, m0_bcount_t segment_size, unsigned shift);
void m0_bufvec_free(struct m0_bufvec *bufvec);
void m0_bufvec_free_aligned(struct m0_bufvec *bufvec, unsigned shift);

struct m0_bufvec_cursor {
  const struct m0_bufvec *bc_vec;
  uint32_t bc_segment;
  m0_bcount_t bc_offset;
};
void m0_bufvec_cursor_init(struct m0_bufvec_cursor *cursor, const struct m0_bufvec *bufvec);
/* True at the end. */
bool m0_bufvec_cursor_move(struct m0_bufvec_cursor *cursor, m0_bcount_t bytes);
/* Bytes that are left in the segment. */
m0_bcount_t m0_bufvec_cursor_step(const struct m0_bufvec_cursor *cursor);
void *m0_bufvec_cursor_addr(struct m0_bufvec_cursor *cursor);
/* Copies across segments of different lengths; returns how much, and moves the cursors. */
m0_bcount_t m0_bufvec_cursor_copy(struct m0_bufvec_cursor *to, struct m0_bufvec_cursor *from, m0_bcount_t bytes);
m0_bcount_t m0_bufvec_cursor_copyto(struct m0_bufvec_cursor *to, void *from, m0_bcount_t bytes);
m0_bcount_t m0_bufvec_cursor_copyfrom(struct m0_bufvec_cursor *from, void *to, m0_bcount_t bytes);

struct m0_bitmap {
  size_t b_nr;
  uint64_t *b_words;
};
int m0_bitmap_init(struct m0_bitmap *map, size_t bits);
void m0_bitmap_fini(struct m0_bitmap *map);
bool m0_bitmap_get(const struct m0_bitmap *map, size_t bit);
void m0_bitmap_set(struct m0_bitmap *map, size_t bit, bool value);

/* ---- lib: mutexes, channels */

struct m0_mutex {
  pthread_mutex_t m_impl;
  pthread_t m_owner;
  bool m_is_locked;
};
void m0_mutex_init(struct m0_mutex *mutex);
void m0_mutex_fini(struct m0_mutex *mutex);
void m0_mutex_lock(struct m0_mutex *mutex);
void m0_mutex_unlock(struct m0_mutex *mutex);
/* By the calling thread. */
bool m0_mutex_is_locked(const struct m0_mutex *mutex);

struct m0_clink;
struct m0_chan {
  struct m0_mutex *ch_guard;
  struct m0_clink *ch_first;
};
/* True: nobody is to be waked by this event any more. */
typedef bool (*m0_chan_cb_t)(struct m0_clink *link);
struct m0_clink {
  m0_chan_cb_t cl_cb;
  struct m0_chan *cl_chan;
  struct m0_clink *cl_next;
  sem_t cl_wait;
};
void m0_chan_init(struct m0_chan *chan, struct m0_mutex *guard);
void m0_chan_fini(struct m0_chan *chan);
void m0_chan_fini_lock(struct m0_chan *chan);
void m0_chan_signal(struct m0_chan *chan);
void m0_chan_signal_lock(struct m0_chan *chan);
void m0_chan_broadcast(struct m0_chan *chan);
void m0_chan_broadcast_lock(struct m0_chan *chan);
void m0_clink_init(struct m0_clink *link, m0_chan_cb_t callback);
void m0_clink_fini(struct m0_clink *link);
void m0_clink_add(struct m0_chan *chan, struct m0_clink *link);
void m0_clink_add_lock(struct m0_chan *chan, struct m0_clink *link);
void m0_clink_del(struct m0_clink *link);
void m0_clink_del_lock(struct m0_clink *link);
bool m0_clink_is_armed(const struct m0_clink *link);
void m0_chan_wait(struct m0_clink *link);
bool m0_chan_trywait(struct m0_clink *link);
/* False: the time has come first. */
bool m0_chan_timedwait(struct m0_clink *link, m0_time_t until);

/* ---- transports */

struct m0_net_xprt;
struct m0_net_domain;
struct m0_net_transfer_mc;
struct m0_net_end_point;
struct m0_net_buffer;
struct m0_net_buffer_pool;

/* With the transfer machine's mutex held, but for those of the domain and of registration. The last eight may be null. */
struct m0_net_xprt_ops {
  int (*xo_dom_init)(const struct m0_net_xprt *xprt, struct m0_net_domain *dom);
  void (*xo_dom_fini)(struct m0_net_domain *dom);
  m0_bcount_t (*xo_get_max_buffer_size)(const struct m0_net_domain *dom);
  m0_bcount_t (*xo_get_max_buffer_segment_size)(const struct m0_net_domain *dom);
  int32_t (*xo_get_max_buffer_segments)(const struct m0_net_domain *dom);
  m0_bcount_t (*xo_get_max_buffer_desc_size)(const struct m0_net_domain *dom);
  int (*xo_end_point_create)(struct m0_net_end_point **epp, struct m0_net_transfer_mc *tm, const char *addr);
  int (*xo_buf_register)(struct m0_net_buffer *nb);
  void (*xo_buf_deregister)(struct m0_net_buffer *nb);
  int (*xo_buf_add)(struct m0_net_buffer *nb);
  void (*xo_buf_del)(struct m0_net_buffer *nb);
  int (*xo_tm_init)(struct m0_net_transfer_mc *tm);
  int (*xo_tm_start)(struct m0_net_transfer_mc *tm, const char *addr);
  int (*xo_tm_stop)(struct m0_net_transfer_mc *tm, bool cancel);
  void (*xo_tm_fini)(struct m0_net_transfer_mc *tm);
  int (*xo_tm_confine)(struct m0_net_transfer_mc *tm, const struct m0_bitmap *processors);
  int (*xo_bev_deliver_sync)(struct m0_net_transfer_mc *tm);
  void (*xo_bev_deliver_all)(struct m0_net_transfer_mc *tm);
  bool (*xo_bev_pending)(struct m0_net_transfer_mc *tm);
  void (*xo_bev_notify)(struct m0_net_transfer_mc *tm, struct m0_chan *chan);
  m0_bcount_t (*xo_rpc_max_seg_size)(struct m0_net_domain *dom);
  uint32_t (*xo_rpc_max_segs_nr)(struct m0_net_domain *dom);
  m0_bcount_t (*xo_rpc_max_msg_size)(struct m0_net_domain *dom, m0_bcount_t rpc_size);
  uint32_t (*xo_rpc_max_recv_msgs)(struct m0_net_domain *dom, m0_bcount_t rpc_size);
};

struct m0_net_xprt {
  const char *nx_name;
  const struct m0_net_xprt_ops *nx_ops;
};

enum { M0_NET_XPRT_MAX = 4 };
/* Fairlead's; m0_net_init() registers it, and makes it the default. */
extern const struct m0_net_xprt m0_net_lnet_xprt;

int m0_net_init(void);
void m0_net_fini(void);
/* A fifth one, or one that is there, is refused. */
void m0_net_xprt_register(const struct m0_net_xprt *xprt);
void m0_net_xprt_deregister(const struct m0_net_xprt *xprt);
void m0_net_xprt_default_set(const struct m0_net_xprt *xprt);
const struct m0_net_xprt *m0_net_xprt_default_get(void);
/* The number of transports; `xprts` has room for M0_NET_XPRT_MAX, or is null. */
int m0_net_xprts_get(const struct m0_net_xprt **xprts);
/* Their names on standard output, one per line. */
void m0_net_print_xprt(void);

/* ---- domains */

struct m0_net_domain {
  const struct m0_net_xprt *nd_xprt; /* null: not initialised */
  void *nd_xprt_private;
  struct m0_mutex nd_mutex;
  struct m0_net_transfer_mc *nd_tms;
  uint64_t nd_registered; /* buffers */
  m0_bcount_t nd_get_max_buffer_size;
  m0_bcount_t nd_get_max_buffer_segment_size;
  int32_t nd_get_max_buffer_segments;
};
int m0_net_domain_init(struct m0_net_domain *dom, const struct m0_net_xprt *xprt);
/* Refused while it has transfer machines or registered buffers. */
void m0_net_domain_fini(struct m0_net_domain *dom);
m0_bcount_t m0_net_domain_get_max_buffer_size(struct m0_net_domain *dom);
m0_bcount_t m0_net_domain_get_max_buffer_segment_size(struct m0_net_domain *dom);
int32_t m0_net_domain_get_max_buffer_segments(struct m0_net_domain *dom);
m0_bcount_t m0_net_domain_get_max_buffer_desc_size(struct m0_net_domain *dom);
/* What an RPC layer should take. */
m0_bcount_t m0_net_domain_rpc_max_seg_size(struct m0_net_domain *dom);
uint32_t m0_net_domain_rpc_max_segs_nr(struct m0_net_domain *dom);
m0_bcount_t m0_net_domain_rpc_max_msg_size(struct m0_net_domain *dom, m0_bcount_t rpc_size);
uint32_t m0_net_domain_rpc_max_recv_msgs(struct m0_net_domain *dom, m0_bcount_t rpc_size);

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
  struct m0_net_transfer_mc *nte_tm;
  m0_time_t nte_time;
  int32_t nte_status;
  enum m0_net_tm_state nte_next_state;
  struct m0_net_end_point *nte_ep; /* the own one, with STARTED */
  void *nte_payload;               /* DIAGNOSTIC: a line of text */
};
struct m0_net_tm_callbacks {
  void (*ntc_event_cb)(const struct m0_net_tm_event *ev);
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
  uint64_t nqs_num_dels;
  uint64_t nqs_num_s_events;
  uint64_t nqs_num_f_events;
  m0_time_t nqs_time_in_queue;
  uint64_t nqs_total_bytes;
  uint64_t nqs_max_bytes;
};

/* A list of buffers, or of end points. */
struct m0_tl {
  void *tl_first;
  void *tl_last;
  uint64_t tl_length;
};
bool m0_net_tm_tlist_is_empty(const struct m0_tl *list);
uint64_t m0_net_tm_tlist_length(const struct m0_tl *list);

struct m0_net_buffer_event;
typedef void (*m0_net_buffer_cb_proc_t)(const struct m0_net_buffer_event *ev);
struct m0_net_buffer_callbacks {
  m0_net_buffer_cb_proc_t nbc_cb[M0_NET_QT_NR];
};

enum { M0_NET_TM_RECV_QUEUE_DEF_LEN = 2 };
#define M0_BUFFER_ANY_COLOUR UINT32_MAX

/* All 0 before m0_net_tm_init(), but for ntm_callbacks. */
struct m0_net_transfer_mc {
  const struct m0_net_tm_callbacks *ntm_callbacks;
  enum m0_net_tm_state ntm_state;
  struct m0_net_domain *ntm_dom;
  struct m0_net_transfer_mc *ntm_next; /* of the domain's */
  uint32_t ntm_callback_counter;
  struct m0_tl ntm_end_points;
  struct m0_net_end_point *ntm_ep; /* its own, from STARTED on */
  struct m0_mutex ntm_mutex;
  struct m0_chan ntm_chan; /* of callbacks that have returned, and of changes of state */
  struct m0_tl ntm_q[M0_NET_QT_NR];
  struct m0_net_qstats ntm_qstats[M0_NET_QT_NR];
  void *ntm_xprt_private;
  bool ntm_bev_auto_deliver;
  bool ntm_stop_pending; /* while STARTING */
  struct m0_net_buffer_pool *ntm_recv_pool;
  const struct m0_net_buffer_callbacks *ntm_recv_pool_callbacks;
  uint32_t ntm_recv_queue_min_length;
  m0_bcount_t ntm_recv_queue_min_recv_size;
  uint32_t ntm_recv_queue_max_recv_msgs;
  uint64_t ntm_recv_queue_deficit;
  uint32_t ntm_pool_colour;
};

int m0_net_tm_init(struct m0_net_transfer_mc *tm, struct m0_net_domain *dom);
/* Waits for callbacks. Refused in a callback of the machine itself, unless INITIALIZED, STOPPED or FAILED, with buffers,
 * or with end points that somebody has. */
void m0_net_tm_fini(struct m0_net_transfer_mc *tm);
int m0_net_tm_confine(struct m0_net_transfer_mc *tm, const struct m0_bitmap *processors);
int m0_net_tm_start(struct m0_net_transfer_mc *tm, const char *addr);
int m0_net_tm_stop(struct m0_net_transfer_mc *tm, bool abort);
int m0_net_tm_stats_get(struct m0_net_transfer_mc *tm, enum m0_net_queue_type qtype, struct m0_net_qstats *qs, bool reset);
int m0_net_tm_pool_attach(struct m0_net_transfer_mc *tm, struct m0_net_buffer_pool *bufpool,
                          const struct m0_net_buffer_callbacks *callbacks, m0_bcount_t min_recv_size,
                          uint32_t max_recv_msgs, uint32_t min_recv_queue_len);
void m0_net_tm_pool_length_set(struct m0_net_transfer_mc *tm, uint32_t len);
void m0_net_tm_colour_set(struct m0_net_transfer_mc *tm, uint32_t colour);
uint32_t m0_net_tm_colour_get(struct m0_net_transfer_mc *tm);
/* Posts an event of a transport; the mutex must not be held. */
void m0_net_tm_event_post(const struct m0_net_tm_event *ev);

/* ---- end points */

struct m0_ref {
  int64_t ref_cnt;
  void (*release)(struct m0_ref *ref); /* the transport's, with the transfer machine's mutex held */
};
struct m0_net_end_point {
  struct m0_ref nep_ref;
  struct m0_net_transfer_mc *nep_tm;
  struct m0_net_end_point *nep_next;
  const char *nep_addr;
  void *nep_xprt_private;
};
int m0_net_end_point_create(struct m0_net_end_point **epp, struct m0_net_transfer_mc *tm, const char *addr);
void m0_net_end_point_get(struct m0_net_end_point *ep);
/* Takes the transfer machine's mutex. */
void m0_net_end_point_put(struct m0_net_end_point *ep);

/* ---- buffers */

enum m0_net_buf_flags {
  M0_NET_BUF_REGISTERED = 1,
  M0_NET_BUF_QUEUED = 2,
  M0_NET_BUF_IN_USE = 4,
  M0_NET_BUF_CANCELLED = 8,
  M0_NET_BUF_TIMED_OUT = 16,
  M0_NET_BUF_RETAIN = 32
};

struct m0_net_buf_desc {
  uint32_t nbd_len;
  uint8_t *nbd_data;
};
struct m0_net_buf_desc_data {
  struct m0_net_buf_desc bdd_desc;
  uint64_t bdd_used;
};
int m0_net_desc_copy(const struct m0_net_buf_desc *from_desc, struct m0_net_buf_desc *to_desc);
void m0_net_desc_free(struct m0_net_buf_desc *desc);

struct m0_net_buffer {
  /* Of the application. */
  struct m0_bufvec nb_buffer;
  enum m0_net_queue_type nb_qtype;
  const struct m0_net_buffer_callbacks *nb_callbacks;
  m0_bcount_t nb_length;
  m0_bcount_t nb_offset;
  struct m0_net_buf_desc nb_desc; /* active: given; passive: made by an add, to be freed by m0_net_desc_free() */
  struct m0_net_end_point *nb_ep;
  m0_time_t nb_timeout; /* a point in time; NEVER after registration, and after each completion */
  m0_bcount_t nb_min_receive_size;
  uint32_t nb_max_receive_msgs;
  void *nb_app_private;
  /* Of the layer. */
  struct m0_net_domain *nb_dom;
  struct m0_net_transfer_mc *nb_tm;
  uint64_t nb_flags;
  m0_time_t nb_add_time;
  uint32_t nb_msgs_received;
  struct m0_net_buffer_pool *nb_pool;
  uint32_t nb_pool_colour;
  bool nb_is_pooled; /* in its pool */
  struct m0_net_buffer *nb_next;
  struct m0_net_buffer *nb_prev;
  void *nb_xprt_private;
};

struct m0_net_buffer_event {
  struct m0_net_buffer *nbe_buffer;
  m0_time_t nbe_time;
  int32_t nbe_status;
  m0_bcount_t nbe_length; /* of success of a receive queue */
  m0_bindex_t nbe_offset; /* of success of MSG_RECV */
  struct m0_net_end_point *nbe_ep; /* the sender, of success of MSG_RECV: to be got if it is kept */
};

int m0_net_buffer_register(struct m0_net_buffer *buf, struct m0_net_domain *dom);
void m0_net_buffer_deregister(struct m0_net_buffer *buf, struct m0_net_domain *dom);
int m0_net_buffer_add(struct m0_net_buffer *buf, struct m0_net_transfer_mc *tm);
/* False: it is not queued any more. True: its completion still comes. */
bool m0_net_buffer_del(struct m0_net_buffer *buf, struct m0_net_transfer_mc *tm);
/* Posts the completion of a transport; the mutex must not be held. */
void m0_net_buffer_event_post(const struct m0_net_buffer_event *ev);

/* ---- synchronous delivery */

int m0_net_buffer_event_deliver_synchronously(struct m0_net_transfer_mc *tm);
void m0_net_buffer_event_deliver_all(struct m0_net_transfer_mc *tm);
bool m0_net_buffer_event_pending(struct m0_net_transfer_mc *tm);
/* Signals the channel once, as soon as an event is pending. */
void m0_net_buffer_event_notify(struct m0_net_transfer_mc *tm, struct m0_chan *chan);

/* ---- buffer pools */

struct m0_net_buffer_pool_ops {
  /* On the thread that puts the first buffer into the empty pool, with the pool locked. */
  void (*nbpo_not_empty)(struct m0_net_buffer_pool *pool);
  /* On the thread that has taken one, with the pool locked. */
  void (*nbpo_below_threshold)(struct m0_net_buffer_pool *pool);
};
enum { M0_NET_BUFFER_POOL_THRESHOLD = 2 };

struct m0_net_buffer_pool {
  const struct m0_net_buffer_pool_ops *nbp_ops;
  uint32_t nbp_free;
  uint32_t nbp_threshold;
  uint32_t nbp_buf_nr;
  uint32_t nbp_seg_nr;
  m0_bcount_t nbp_seg_size;
  unsigned nbp_align;
  struct m0_net_domain *nbp_ndom;
  uint32_t nbp_colours_nr;
  struct m0_mutex nbp_mutex;
  void *nbp_private;
};
int m0_net_buffer_pool_init(struct m0_net_buffer_pool *pool, struct m0_net_domain *ndom, uint32_t threshold,
                            uint32_t seg_nr, m0_bcount_t seg_size, uint32_t colours, unsigned shift, bool dont_dump);
/* Refused while a buffer is out. */
void m0_net_buffer_pool_fini(struct m0_net_buffer_pool *pool);
void m0_net_buffer_pool_lock(struct m0_net_buffer_pool *pool);
void m0_net_buffer_pool_unlock(struct m0_net_buffer_pool *pool);
bool m0_net_buffer_pool_is_locked(const struct m0_net_buffer_pool *pool);
/* With the pool locked. A put takes back what a get or a provision of this pool gave. */
int m0_net_buffer_pool_provision(struct m0_net_buffer_pool *pool, uint32_t buf_nr); /* how many were made */
bool m0_net_buffer_pool_prune(struct m0_net_buffer_pool *pool);
struct m0_net_buffer *m0_net_buffer_pool_get(struct m0_net_buffer_pool *pool, uint32_t colour);
void m0_net_buffer_pool_put(struct m0_net_buffer_pool *pool, struct m0_net_buffer *buf, uint32_t colour);
/* For nbpo_not_empty, with the pool locked: the transfer machines take what they lack. */
void m0_net_domain_buffer_pool_not_empty(struct m0_net_buffer_pool *pool);

/* ---- addresses of this transport */

enum { M0_NET_LNET_XEP_ADDR_LEN = 80, M0_NET_LNET_NIDSTR_SIZE = 32 };

/* Orders by what stands before the first colon; -1 if there is none. */
int m0_net_lnet_ep_addr_net_cmp(const char *addr1, const char *addr2);
/* The nids of this host, and a null; to be put back. */
int m0_net_lnet_ifaces_get(struct m0_net_domain *dom, char *const **addrs);
void m0_net_lnet_ifaces_put(struct m0_net_domain *dom, char *const **addrs);

#ifdef __cplusplus
}
#endif

#endif
