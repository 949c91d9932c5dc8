/** @file
 * Messages and bulk transfer with completion events, for C: fairlead/net.hpp as functions (docs/net.md, "From C").
 *
 * Model. A domain holds settings. A buffer of the domain is memory. A machine (transfer machine) of the domain has an
 * address; one adds buffers to its queues, and each buffer that was added comes back in exactly one final event. An end
 * point names another machine. C11 and C++.
 *
 *   queue                        what a buffer there does                                   its partner
 *   FAIRLEAD_NET_MESSAGE_RECEIVE takes messages of any sender, one after the other          MESSAGE_SEND
 *   FAIRLEAD_NET_MESSAGE_SEND    is sent as one message to an end point                     MESSAGE_RECEIVE
 *   FAIRLEAD_NET_PASSIVE_RECEIVE is written by whoever was given its descriptor             ACTIVE_SEND
 *   FAIRLEAD_NET_PASSIVE_SEND    is read by whoever was given its descriptor                ACTIVE_RECEIVE
 *   FAIRLEAD_NET_ACTIVE_RECEIVE  fetches what a descriptor names                            PASSIVE_SEND
 *   FAIRLEAD_NET_ACTIVE_SEND     fills what a descriptor names                              PASSIVE_RECEIVE
 *
 * Versions. A structure that a program fills begins with `struct_size`, to be set to its sizeof; all else may be 0,
 * which is the default. One of a later release may be longer: what an older library does not know has to be 0, or the
 * call is refused (not_supported). Fields called `reserved` must be 0, or the call is `invalid`. Structures that the
 * library fills begin with it as well, and are filled so far.
 *
 * Errors. Calls that can fail return a fairlead_status; ok is 0. fairlead_net_explain_last() tells why the last one of
 * the calling thread was refused, in one line. Null where a handle or a result is wanted is `invalid`.
 *
 * Handles. What *_create, *_open, *_allocate, *_borrow and *_copy have made is given back by the *_free of its kind;
 * null may be freed. In the child of a fork() all handles of its parent answer bad_state, and may be freed.
 *
 * Thread rules. Every call may come from any thread, also from inside a callback, unless its description says
 * otherwise; a machine's callbacks run one at a time and without any of its locks. A callback must not throw.
 *
 * Units. Lengths are bytes. Times are nanoseconds of CLOCK_MONOTONIC, as fairlead_net_now() tells them; deadlines are
 * points in time. Text is UTF-8 and ends with 0; functions that write text do so as snprintf: at most `size` bytes, and
 * they return the length that the whole text has, without its 0. */
#ifndef FAIRLEAD_NET_H
#define FAIRLEAD_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** No deadline. */
#define FAIRLEAD_NET_NEVER INT64_MAX

/* ---- statuses */

/** Outcome of a call or of an operation. The numbers are stable. */
typedef enum fairlead_status {
  FAIRLEAD_OK = 0,
  FAIRLEAD_AGAIN,         /**< a bounded queue is full; deliver events, then try again */
  FAIRLEAD_CANCELED,      /**< cancelled by its owner before it finished */
  FAIRLEAD_TIMED_OUT,     /**< its deadline passed first */
  FAIRLEAD_TOO_LATE,      /**< its deadline had passed when it was added */
  FAIRLEAD_TOO_BIG,       /**< longer than the other side's buffer */
  FAIRLEAD_MESSAGE_SIZE,  /**< message longer than any buffer can take */
  FAIRLEAD_NO_BUFFER,     /**< the receiver had no buffer queued */
  FAIRLEAD_NOT_PERMITTED, /**< wrong kind of buffer */
  FAIRLEAD_STALE,         /**< descriptor of an earlier time */
  FAIRLEAD_INVALID,       /**< malformed argument */
  FAIRLEAD_BAD_STATE,     /**< the object is not in a state that allows this */
  FAIRLEAD_UNREACHABLE,   /**< never heard from the peer */
  FAIRLEAD_SILENT,        /**< the peer was heard before, but stopped acknowledging */
  FAIRLEAD_RESTARTED,     /**< the peer's engine is a new incarnation */
  FAIRLEAD_REFUSED,       /**< nobody listens at the peer's address */
  FAIRLEAD_NO_MEMORY,     /**< memory, or a bounded pool, is exhausted */
  FAIRLEAD_IN_USE,        /**< the address is taken */
  FAIRLEAD_NOT_AVAILABLE, /**< no free address left, or not local */
  FAIRLEAD_NOT_SUPPORTED, /**< not built or not possible here */
  FAIRLEAD_SYSTEM         /**< the kernel refused */
} fairlead_status;

/** "no receive buffer", "stale" and so on; lives for ever. Any thread. */
const char* fairlead_status_name(fairlead_status status);
/** The errno (positive) that C programs expect for it; 0 for ok. */
int fairlead_status_errno(fairlead_status status);
/** Why the last call of this header that the calling thread has made, and that failed, did: one line. Empty if none
 * did. The line of an add tells only why add refused, until another call fails. */
size_t fairlead_net_explain_last(char* text, size_t size);

/** The time on the clock of all deadlines. */
int64_t fairlead_net_now(void);

/* ---- handles */

typedef struct fairlead_net_domain fairlead_net_domain;
typedef struct fairlead_net_machine fairlead_net_machine;
typedef struct fairlead_net_buffer fairlead_net_buffer;
typedef struct fairlead_net_pool fairlead_net_pool;
typedef struct fairlead_net_end_point fairlead_net_end_point;
typedef struct fairlead_net_loan fairlead_net_loan;

/** The numbers travel in descriptors. */
typedef enum fairlead_net_queue {
  FAIRLEAD_NET_MESSAGE_RECEIVE = 0,
  FAIRLEAD_NET_MESSAGE_SEND = 1,
  FAIRLEAD_NET_PASSIVE_RECEIVE = 2,
  FAIRLEAD_NET_PASSIVE_SEND = 3,
  FAIRLEAD_NET_ACTIVE_RECEIVE = 4,
  FAIRLEAD_NET_ACTIVE_SEND = 5
} fairlead_net_queue;

enum { FAIRLEAD_NET_QUEUES = 6, FAIRLEAD_NET_DESCRIPTOR_SIZE = 64 };

/* ---- domains */

/** A setting of the engine, e.g. {"ack_delay", "50"}, on top of the environment's (FAIRLEAD_ACK_DELAY=50). */
typedef struct fairlead_net_setting {
  const char* name;
  const char* value;
} fairlead_net_setting;

typedef struct fairlead_net_domain_options {
  size_t struct_size;
  const fairlead_net_setting* settings;
  size_t settings_count;
  /** What buffers may be at most: bytes altogether, bytes of a segment, segments. 0: the library's own limits. */
  uint64_t buffer_bytes;
  uint64_t segment_bytes;
  uint64_t segments;
} fairlead_net_domain_options;

/** `options` may be null. Several domains in a process are normal. `invalid` names the setting, the environment
 * variable or the limit that is unknown or out of range. */
fairlead_status fairlead_net_domain_open(const fairlead_net_domain_options* options, fairlead_net_domain** domain);
/** Ends it: from then on nothing can be made in it. `bad_state`, and nothing changed, while it has machines or buffers.
 * The handle still has to be freed. */
fairlead_status fairlead_net_domain_close(fairlead_net_domain* domain);
/** Machines and buffers that are left keep what they need. */
void fairlead_net_domain_free(fairlead_net_domain* domain);
/** The limits of buffers. 0 of null. */
uint64_t fairlead_net_domain_buffer_size_max(const fairlead_net_domain* domain);
uint64_t fairlead_net_domain_segment_size_max(const fairlead_net_domain* domain);
uint64_t fairlead_net_domain_segments_max(const fairlead_net_domain* domain);

/* ---- addresses: nid@network:pid:portal:tmid, e.g. 10.0.0.5@udp:20480:34:1, [::1]@udp:20480:34:1, 0@lo:20480:34:1 */

/** The nids on which a machine of this process can start, one per line. 0 and empty if the kernel does not tell. */
size_t fairlead_net_local_nids(char* text, size_t size);
/** Orders two addresses by their nid alone: *order < 0, 0 or > 0. `invalid`: malformed. */
fairlead_status fairlead_net_compare_nids(const char* a, const char* b, int* order);
/** Writes the address of a machine on a host that has a name: ("server:20480", "34:1"). Asks the system's resolver,
 * which may take seconds. `invalid`: malformed, or `size` is too small. `not_available`: the host has no address. */
fairlead_status fairlead_net_resolve(const char* host, const char* rest, char* text, size_t size);

/* ---- events */

/** The end of an operation, or (is_final false) one message of a receive buffer that stays queued. Valid during the
 * callback. */
typedef struct fairlead_net_buffer_event {
  size_t struct_size;
  /** Of a buffer that was freed in a callback: a stand-in, good for this callback. */
  fairlead_net_buffer* buffer;
  fairlead_net_machine* machine; /**< it was queued with; null if that was freed in a callback */
  fairlead_net_queue queue;
  fairlead_status status;
  /** True: the buffer is the program's again, and may be added in this very callback. False: it stays queued, and just
   * [offset, offset + length) may be read. */
  bool is_final;
  uint64_t length;                      /**< received: on success of a receive queue, else 0 */
  uint64_t offset;                      /**< of a message in the buffer, else 0 */
  uint64_t room;                        /**< what is left for further messages; 0 of a final event */
  int64_t time_ns;                      /**< when the engine finished it */
  const fairlead_net_end_point* sender; /**< of a message; else null. Copy it to keep it */
  const void* loan;                     /**< the message, if it is read in place, `length` bytes; else null */
  void* loan_owner;                     /**< the library's */
} fairlead_net_buffer_event;

typedef void (*fairlead_net_buffer_callback)(const fairlead_net_buffer_event* event, void* user);

/** The numbers are Motr's. */
typedef enum fairlead_net_machine_state {
  FAIRLEAD_NET_UNDEFINED = 0,
  FAIRLEAD_NET_INITIALIZED = 1,
  FAIRLEAD_NET_STARTING = 2,
  FAIRLEAD_NET_STARTED = 3,
  FAIRLEAD_NET_STOPPING = 4,
  FAIRLEAD_NET_STOPPED = 5,
  FAIRLEAD_NET_FAILED = 6
} fairlead_net_machine_state;

typedef enum fairlead_net_machine_event_kind {
  FAIRLEAD_NET_EVENT_ERROR = 0, /**< `status` no_buffer: messages were dropped; restarted: the host engine has ended */
  FAIRLEAD_NET_EVENT_STATE_CHANGE = 1, /**< to next_state: started, stopped, or failed with its cause in `status` */
  FAIRLEAD_NET_EVENT_DIAGNOSTIC = 2,   /**< `text` alone */
  FAIRLEAD_NET_EVENT_PEER_GONE = 3,    /**< the engine `peer`, of which the machine has end points, is lost */
  FAIRLEAD_NET_EVENT_STATISTICS = 4    /**< `text`: a line of key=value (fairlead_net_machine_report_statistics()) */
} fairlead_net_machine_event_kind;

/** Something happened to the machine itself. Valid during the callback. */
typedef struct fairlead_net_machine_event {
  size_t struct_size;
  fairlead_net_machine_event_kind kind;
  fairlead_net_machine* machine;
  int64_t time_ns;
  fairlead_status status;
  fairlead_net_machine_state next_state;
  const fairlead_net_end_point* end_point; /**< the machine's own, with started; else null */
  const char* text;                        /**< one line, or empty */
  const char* peer;                        /**< peer_gone: "10.0.0.5@udp:20480"; else empty */
} fairlead_net_machine_event;

typedef void (*fairlead_net_machine_callback)(const fairlead_net_machine_event* event, void* user);

/* ---- end points */

/** One more reference. Null of null; null too, with a reason, if there is no memory. */
fairlead_net_end_point* fairlead_net_end_point_copy(const fairlead_net_end_point* end_point);
/** All references have to be freed before their machine's close. */
void fairlead_net_end_point_free(fairlead_net_end_point* end_point);
/** Writes the address. */
size_t fairlead_net_end_point_address(const fairlead_net_end_point* end_point, char* text, size_t size);
/** Whether both name the same machine for the same machine. */
bool fairlead_net_end_point_equal(const fairlead_net_end_point* a, const fairlead_net_end_point* b);

/* ---- buffers */

typedef struct fairlead_net_segment {
  void* memory;
  uint64_t length;
} fairlead_net_segment;

/** Memory of its own: `size` bytes, zero, aligned. Of a network machine that has started before, peers of this host
 * reach it by themselves. `invalid`: 0 bytes. `too_big`: above the domain's limit. `no_memory`. */
fairlead_status fairlead_net_buffer_allocate(fairlead_net_domain* domain, uint64_t size, fairlead_net_buffer** buffer);
/** The caller's memory, which has to outlive the buffer. `invalid`: no segment, an empty one, or one at null.
 * `too_big`: more segments or bytes than the domain's limits. */
fairlead_status fairlead_net_buffer_borrow(fairlead_net_domain* domain, const fairlead_net_segment* segments,
                                           size_t count, fairlead_net_buffer** buffer);
/** Of a queued buffer: cancels it and waits for its final event; in a callback for the end of the use of its memory
 * only, and its final event comes after that callback. Not of a pool's buffer. */
void fairlead_net_buffer_free(fairlead_net_buffer* buffer);
/** What is called with its events, of one queue. `bad_state` while it is queued or a callback of it runs, but for its
 * own final callback, which may set those of the other queues. */
fairlead_status fairlead_net_buffer_set_callback(fairlead_net_buffer* buffer, fairlead_net_queue queue,
                                                 fairlead_net_buffer_callback callback, void* user);
/** The same for all queues. `bad_state` in a callback of it, too. */
fairlead_status fairlead_net_buffer_set_callbacks(fairlead_net_buffer* buffer, fairlead_net_buffer_callback callback,
                                                  void* user);
/** A word of the program's own. Set it while no callback of the buffer runs. */
void fairlead_net_buffer_set_user(fairlead_net_buffer* buffer, void* user);
void* fairlead_net_buffer_user(const fairlead_net_buffer* buffer);
uint64_t fairlead_net_buffer_size(const fairlead_net_buffer* buffer);
size_t fairlead_net_buffer_segment_count(const fairlead_net_buffer* buffer);
/** Of a segment that it has not: null and 0. */
fairlead_net_segment fairlead_net_buffer_segment(const fairlead_net_buffer* buffer, size_t index);
/** Copy across segments; return how many bytes fitted. */
uint64_t fairlead_net_buffer_write(fairlead_net_buffer* buffer, uint64_t offset, const void* from, uint64_t length);
uint64_t fairlead_net_buffer_read(const fairlead_net_buffer* buffer, uint64_t offset, void* to, uint64_t length);
/** Copies the descriptor of the last successful add to a passive queue, all zero before the first. Not while another
 * thread adds the buffer. */
void fairlead_net_buffer_descriptor(const fairlead_net_buffer* buffer, uint8_t to[FAIRLEAD_NET_DESCRIPTOR_SIZE]);
bool fairlead_net_buffer_is_queued(const fairlead_net_buffer* buffer);

/** What a descriptor says. */
typedef struct fairlead_net_descriptor_facts {
  size_t struct_size;
  fairlead_net_queue queue; /**< of the passive buffer */
  uint64_t size;            /**< bytes that may be written (receive) or read (send) */
  char address[128];        /**< of the passive buffer's machine */
} fairlead_net_descriptor_facts;

/** `invalid` tells what is wrong with it. An add makes the same checks. */
fairlead_status fairlead_net_descriptor_inspect(const void* descriptor, size_t size,
                                                fairlead_net_descriptor_facts* facts);

/** Moves a message that is read in place out of its event, in the callback: it is given back by freeing it. Null if
 * there is none, or no memory. */
fairlead_net_loan* fairlead_net_event_keep_loan(const fairlead_net_buffer_event* event);
void fairlead_net_loan_free(fairlead_net_loan* loan);

/* ---- machines: before the start */

/** `callback` may be null. */
fairlead_status fairlead_net_machine_create(fairlead_net_domain* domain, fairlead_net_machine_callback callback,
                                            void* user, fairlead_net_machine** machine);
/** Of a running machine: stops it as by FAIRLEAD_NET_ABORT, and waits until it has stopped; its events until then are
 * delivered. In a callback of the machine itself it does not wait. */
void fairlead_net_machine_free(fairlead_net_machine* machine);
/** Its event thread will run on these CPUs only; with synchronous delivery there is none. `bad_state` unless
 * initialized; `invalid`: none. */
fairlead_status fairlead_net_machine_confine(fairlead_net_machine* machine, const unsigned* cpus, size_t count);
/** Buffer events will be delivered by fairlead_net_machine_deliver_all(), and the machine will have no thread: the
 * calls that deliver or wait keep its deadlines, tell its events, and make the last step of a stop. `bad_state` unless
 * initialized. */
fairlead_status fairlead_net_machine_deliver_synchronously(fairlead_net_machine* machine);
/** FAIRLEAD_NET_EVENT_STATISTICS will come every so often. `bad_state` unless initialized; `invalid`: not 1 ms to 1
 * day.
 */
fairlead_status fairlead_net_machine_report_statistics(fairlead_net_machine* machine, int64_t every_ns);

/* ---- machines: start and stop */

typedef enum fairlead_net_stop_mode {
  FAIRLEAD_NET_DRAIN = 0, /**< waits until each buffer has ended by itself */
  FAIRLEAD_NET_ABORT = 1  /**< cancels them */
} fairlead_net_stop_mode;

/** Malformed text fails at once (`invalid`, and the machine is failed); all else is told by an event: started or
 * failed. `bad_state` unless initialized. */
fairlead_status fairlead_net_machine_start(fairlead_net_machine* machine, const char* address);
/** The same, and waits for its outcome. Not in a callback of this machine (bad_state). not_available: not local, or no
 * tmid is free. in_use. invalid. system. */
fairlead_status fairlead_net_machine_start_and_wait(fairlead_net_machine* machine, const char* address);
/** Told by an event: stopped. `bad_state` unless initialized, starting or started; abort also while stopping. */
fairlead_status fairlead_net_machine_stop(fairlead_net_machine* machine, fairlead_net_stop_mode mode);
/** The same, and waits until it has stopped. Not in a callback of this machine (bad_state). */
fairlead_status fairlead_net_machine_stop_and_wait(fairlead_net_machine* machine, fairlead_net_stop_mode mode);
/** `bad_state`, and nothing changed, unless initialized, stopped or failed, and while the program refers to any of its
 * end points. The handle still has to be freed. */
fairlead_status fairlead_net_machine_close(fairlead_net_machine* machine);
fairlead_net_machine_state fairlead_net_machine_get_state(const fairlead_net_machine* machine);
/** Why the start failed, and in one line; ok and empty unless failed. `text` may be null if `size` is 0. */
fairlead_status fairlead_net_machine_failure(const fairlead_net_machine* machine, char* text, size_t size);

/** A reference to its own end point, to be freed; null before started. */
fairlead_net_end_point* fairlead_net_machine_end_point(const fairlead_net_machine* machine);
/** A reference to the end point of another (or this) machine. Sends nothing. `invalid`: malformed, `*`, or out of
 * range. `unreachable`: of another network. `bad_state` unless started. */
fairlead_status fairlead_net_machine_create_end_point(fairlead_net_machine* machine, const char* address,
                                                      fairlead_net_end_point** end_point);
/** Writes what is known of the host behind an end point. */
size_t fairlead_net_machine_describe(const fairlead_net_machine* machine, const fairlead_net_end_point* end_point,
                                     char* text, size_t size);

/* ---- how two programs meet (fairlead/net/invitation.hpp) */

/** Tells the other end of a connected stream socket where the machine is, with the descriptors of buffers in its
 * passive queues, and takes what it tells by the same call: a reference to its machine's end point, and its
 * descriptors, one after the other; *descriptors_count is room for so many before, and how many there are after.
 * `descriptors` may be null if there is no room. `timed_out`; `bad_state`: not started, or a buffer is not queued;
 * `invalid`: the other end tells nonsense; `system`: it has gone, or speaks another language. */
fairlead_status fairlead_net_machine_meet(fairlead_net_machine* machine, int socket,
                                          const fairlead_net_buffer* const* buffers, size_t count, int64_t deadline_ns,
                                          fairlead_net_end_point** peer, uint8_t* descriptors,
                                          size_t* descriptors_count);
/** The same by a line of text, whatever way it goes. Returns its length; 0, with a reason, if there is none. */
size_t fairlead_net_machine_invite(const fairlead_net_machine* machine, const fairlead_net_buffer* const* buffers,
                                   size_t count, char* text, size_t size);
fairlead_status fairlead_net_machine_accept(fairlead_net_machine* machine, const char* invitation,
                                            fairlead_net_end_point** peer, uint8_t* descriptors,
                                            size_t* descriptors_count);

/* ---- machines: buffers */

/** What a buffer is added for. Fields that a queue does not name are not looked at. */
typedef struct fairlead_net_operation {
  size_t struct_size;
  fairlead_net_queue queue;
  /** MESSAGE_SEND, PASSIVE_SEND, ACTIVE_SEND: the first so many bytes of the buffer; 0: all. */
  uint64_t length;
  /** Of the whole operation; 0 and FAIRLEAD_NET_NEVER: none. */
  int64_t deadline_ns;
  /** MESSAGE_SEND: where to. Of the same machine; not needed after the call. */
  const fairlead_net_end_point* to;
  /** ACTIVE_*: not needed after the call. */
  const void* descriptor;
  size_t descriptor_size;
  /** MESSAGE_RECEIVE: the buffer ends when fewer bytes than size_min are left (0: all of it, a message per buffer) or
   * messages_max messages have come (0: 1). */
  uint64_t size_min;
  uint32_t messages_max;
  bool takes_loans;  /**< MESSAGE_RECEIVE: messages that are lent are read in place */
  bool is_loan;      /**< MESSAGE_SEND: the buffer is lent to a receiver on this host */
  bool is_confirmed; /**< MESSAGE_SEND: the event tells that a buffer took it, or why none did */
  uint8_t reserved;  /**< 0, else `invalid` */
} fairlead_net_operation;

/** Queues a buffer. ok promises one final event; on any other answer nothing has changed. The answers and their causes
 * are those of TransferMachine::add() (fairlead/net/transfer_machine.hpp): bad_state, invalid, not_permitted,
 * too_big, unreachable, stale, too_late, message_size, again, no_memory. */
fairlead_status fairlead_net_machine_add(fairlead_net_machine* machine, fairlead_net_buffer* buffer,
                                         const fairlead_net_operation* operation);
/** Queues buffers as an add of each would, in this order, up to the first that is refused; *added tells how many.
 * Messages to send cost one lock for all. */
fairlead_status fairlead_net_machine_add_all(fairlead_net_machine* machine, fairlead_net_buffer* const* buffers,
                                             size_t count, const fairlead_net_operation* operation, size_t* added);
/** Asks for the end of an operation. False if the buffer is not queued here (any more); true promises exactly one more
 * final event: canceled, or its real outcome if that came first. */
bool fairlead_net_machine_cancel(fairlead_net_machine* machine, fairlead_net_buffer* buffer);
/** Largest message; 0 before started. */
uint64_t fairlead_net_machine_message_size_max(const fairlead_net_machine* machine);

/* ---- machines: synchronous delivery. All are `bad_state` unless the machine is started, or being
   stopped, and delivers synchronously. */

/** Makes progress, then calls back for at most `budget` pending events; *delivered, which may be null, tells how many.
 */
fairlead_status fairlead_net_machine_deliver_all(fairlead_net_machine* machine, size_t budget, size_t* delivered);
/** Makes progress; whether there is an event to deliver. */
bool fairlead_net_machine_pending(fairlead_net_machine* machine);
/** Waits until an event is pending, or the deadline. *is_pending, which may be null, tells which. `bad_state` also
 * while another thread waits. Ends early when the machine is stopped. */
fairlead_status fairlead_net_machine_wait(fairlead_net_machine* machine, int64_t deadline_ns, bool* is_pending);
/** Waits until one of the machines has a pending event: *index. `timed_out`: none by the deadline. `invalid`: no
 * machines. */
fairlead_status fairlead_net_wait_any(fairlead_net_machine* const* machines, size_t count, int64_t deadline_ns,
                                      size_t* index);
/** For poll and epoll: the descriptor becomes readable with the first event after an arm that answered true in
 * *is_armed, and with a stop. False: events are pending, deliver them first. */
fairlead_status fairlead_net_machine_arm(fairlead_net_machine* machine, bool* is_armed);
/** The machine's, from started to its stop; -1 else. Whoever has it may sleep on it until the machine is freed. */
int fairlead_net_machine_descriptor(const fairlead_net_machine* machine);
/** `signal` will be called once, as soon as an event is pending. Replaces one that was not called yet. */
fairlead_status fairlead_net_machine_notify(fairlead_net_machine* machine, void (*signal)(void* user), void* user);

/* ---- machines: figures */

typedef struct fairlead_net_queue_statistics {
  uint64_t adds;
  uint64_t deletes; /**< operations that a cancel or a stop asked to end; deadlines are none */
  uint64_t successes;
  uint64_t failures;
  int64_t time_in_queue_ns; /**< from the add to the final event, summed up */
  uint64_t bytes_total;
  uint64_t bytes_max;
} fairlead_net_queue_statistics;

typedef struct fairlead_net_statistics {
  size_t struct_size;
  fairlead_net_queue_statistics queues[FAIRLEAD_NET_QUEUES];
} fairlead_net_statistics;

/** A consistent snapshot. `reset` starts the counts anew in the same moment; then `statistics` may be null. */
fairlead_status fairlead_net_machine_statistics(fairlead_net_machine* machine, bool reset,
                                                fairlead_net_statistics* statistics);
/** Messages that no queued buffer could take, since the start. */
uint64_t fairlead_net_machine_messages_dropped(const fairlead_net_machine* machine);
/** Calls back for each counter of the engine that serves this machine, before it returns. */
void fairlead_net_machine_counters(const fairlead_net_machine* machine,
                                   void (*each)(const char* name, uint64_t value, void* user), void* user);

/* ---- pools of receive buffers */

/** Stands for any colour, and for none in particular. */
#define FAIRLEAD_NET_ANY_COLOUR UINT32_MAX

typedef struct fairlead_net_pool_options {
  size_t struct_size;
  uint64_t buffer_size; /**< of each; 0: 64 KiB */
  uint32_t colours;     /**< how many there are, 0..1024: 0..colours - 1. A colour stands for a processor */
  uint32_t threshold;   /**< 0: 2 */
  /** Called without a lock when fewer than `threshold` buffers are left, and when the first one is put into the empty
   * pool. May be null. */
  void (*on_below_threshold)(void* user);
  void (*on_not_empty)(void* user);
  void* user;
} fairlead_net_pool_options;

/** An empty pool. `options` may be null. */
fairlead_status fairlead_net_pool_create(const fairlead_net_domain* domain, const fairlead_net_pool_options* options,
                                         fairlead_net_pool** pool);
/** Its buffers live until the machines that take buffers of it are gone, too. Not in a callback of the pool. */
void fairlead_net_pool_free(fairlead_net_pool* pool);
/** Makes so many buffers more; *made, which may be null, tells how many. An error if none could be. */
fairlead_status fairlead_net_pool_provision(fairlead_net_pool* pool, size_t count, size_t* made);
/** Destroys the least recently used buffer. False if no more than `threshold` are there. */
bool fairlead_net_pool_prune(fairlead_net_pool* pool);
/** A buffer for the caller's own use, of that colour if there is one. Null, with a reason, if the pool is empty
 * or has no such colour. To be put back, never freed. */
fairlead_net_buffer* fairlead_net_pool_get(fairlead_net_pool* pool, uint32_t colour);
/** Gives a buffer back: one of get, or of a final event with status ok. `invalid`: of another pool, or no such colour.
 * `bad_state`: it is queued, or here already. */
fairlead_status fairlead_net_pool_put(fairlead_net_pool* pool, fairlead_net_buffer* buffer, uint32_t colour);
size_t fairlead_net_pool_free_count(const fairlead_net_pool* pool);
size_t fairlead_net_pool_size(const fairlead_net_pool* pool);

/** How a machine takes buffers of a pool to receive messages. */
typedef struct fairlead_net_provision {
  size_t struct_size;
  fairlead_net_buffer_callback callback; /**< of these receives */
  void* user;
  uint64_t size_min;     /**< as fairlead_net_operation's */
  uint32_t messages_max; /**< as fairlead_net_operation's */
  uint32_t length;       /**< buffers that are queued ahead; 0: 2 */
  uint32_t colour;       /**< of the pool's, if it has any */
  bool has_colour;       /**< else any */
  bool takes_loans;
  uint8_t reserved[2]; /**< 0, else `invalid` */
} fairlead_net_provision;

/** Messages will be received into buffers of the pool, which the engine takes by itself. `bad_state` unless
 * initialized. `invalid`: the pool is of another domain; no callback; something out of range. */
fairlead_status fairlead_net_machine_attach(fairlead_net_machine* machine, const fairlead_net_pool* pool,
                                            const fairlead_net_provision* provision);
/** `bad_state`: no pool is attached, or the machine has stopped. `invalid`: the pool has no such colour. */
fairlead_status fairlead_net_machine_set_receive_length(fairlead_net_machine* machine, uint32_t length);
fairlead_status fairlead_net_machine_set_receive_colour(fairlead_net_machine* machine, uint32_t colour);
/** How many of `length` buffers are missing, as the pool had none. */
uint32_t fairlead_net_machine_receive_deficit(const fairlead_net_machine* machine);

#ifdef __cplusplus
}
#endif

#endif
