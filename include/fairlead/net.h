/** @file
 * Messages and bulk transfers with completion events for C: fairlead/net.hpp as functions (docs/net.md, "From C").
 *
 * Model. A domain holds settings. A buffer of the domain is memory. A machine (transfer machine) of the domain has an
 * address. The program adds buffers to its queues; each added buffer returns to the program in exactly one final event.
 * An end point names another machine. C11 and C++.
 *
 *   queue                        what a buffer in it does                                   its partner
 *   FAIRLEAD_NET_MESSAGE_RECEIVE receives messages from any sender, one after the other     MESSAGE_SEND
 *   FAIRLEAD_NET_MESSAGE_SEND    is sent as one message to an end point                     MESSAGE_RECEIVE
 *   FAIRLEAD_NET_PASSIVE_RECEIVE is written by the holder of its descriptor                 ACTIVE_SEND
 *   FAIRLEAD_NET_PASSIVE_SEND    is read by the holder of its descriptor                    ACTIVE_RECEIVE
 *   FAIRLEAD_NET_ACTIVE_RECEIVE  reads the buffer that a descriptor names                   PASSIVE_SEND
 *   FAIRLEAD_NET_ACTIVE_SEND     writes the buffer that a descriptor names                  PASSIVE_RECEIVE
 *
 * Versions. Structures that a program fills begin with `struct_size`, which the program sets to their sizeof. All other
 * fields may be 0, the default. In a later release a structure may be longer. Fields that an older library does not
 * know must be 0, or the call fails with not_supported. Fields called `reserved` must be 0, or the call is `invalid`.
 * Structures that the library fills begin with `struct_size` too; the library fills no more than that many bytes.
 *
 * Errors. Calls that can fail return a fairlead_status; ok is 0. fairlead_net_explain_last() gives one line with the
 * reason for the calling thread's last failure. A null pointer for a required handle or result is `invalid`.
 *
 * Handles. Free the results of *_create, *_open, *_allocate, *_borrow and *_copy with the *_free function of their
 * kind; it ignores null. In a child of fork(), calls with handles of the parent return bad_state; the child may free
 * them.
 *
 * Thread rules. Any thread may make any call, also inside a callback, unless the description says otherwise. A machine
 * runs its callbacks one at a time, without holding a lock. A callback must not throw.
 *
 * Units. Lengths are in bytes. Times are in nanoseconds of CLOCK_MONOTONIC, as returned by fairlead_net_now();
 * deadlines are absolute. Text is UTF-8 and ends with a 0 byte. Functions that write text work like snprintf: they
 * write at most `size` bytes, and return the length of the whole text without its 0. */
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
  FAIRLEAD_TOO_LATE,      /**< its deadline had already passed when it was added */
  FAIRLEAD_TOO_BIG,       /**< longer than the other side's buffer */
  FAIRLEAD_MESSAGE_SIZE,  /**< message longer than any buffer can take */
  FAIRLEAD_NO_BUFFER,     /**< the receiver had no buffer queued */
  FAIRLEAD_NOT_PERMITTED, /**< wrong kind of buffer */
  FAIRLEAD_STALE,         /**< the descriptor is no longer valid */
  FAIRLEAD_INVALID,       /**< malformed argument */
  FAIRLEAD_BAD_STATE,     /**< the object is not in a state that allows this */
  FAIRLEAD_UNREACHABLE,   /**< never heard from the peer */
  FAIRLEAD_SILENT,        /**< the peer was heard before, but stopped acknowledging */
  FAIRLEAD_RESTARTED,     /**< the peer's engine is a new incarnation, or the host engine has ended */
  FAIRLEAD_REFUSED,       /**< nobody listens there, or the peer refuses: no such machine, closed, other key */
  FAIRLEAD_NO_MEMORY,     /**< memory, or a bounded pool, is exhausted */
  FAIRLEAD_IN_USE,        /**< the address is taken */
  FAIRLEAD_NOT_AVAILABLE, /**< no free address left, or not local */
  FAIRLEAD_NOT_SUPPORTED, /**< not built or not possible here */
  FAIRLEAD_SYSTEM         /**< the kernel refused */
} fairlead_status;

/** "no receive buffer", "stale" and so on; a static string. Any thread. */
const char* fairlead_status_name(fairlead_status status);
/** The positive errno that C programs expect for a status; 0 for ok. */
int fairlead_status_errno(fairlead_status status);
/** One line with the reason for the calling thread's last failed call of this header. Empty if no call failed. */
size_t fairlead_net_explain_last(char* text, size_t size);

/** The current time of the clock that deadlines use. */
int64_t fairlead_net_now(void);

/* ---- handles */

typedef struct fairlead_net_domain fairlead_net_domain;
typedef struct fairlead_net_machine fairlead_net_machine;
typedef struct fairlead_net_buffer fairlead_net_buffer;
typedef struct fairlead_net_pool fairlead_net_pool;
typedef struct fairlead_net_end_point fairlead_net_end_point;
typedef struct fairlead_net_loan fairlead_net_loan;

/** The numbers are stable: descriptors contain them. */
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

/** An engine setting, e.g. {"ack_delay", "50"}. It overrides the environment (FAIRLEAD_ACK_DELAY=50). */
typedef struct fairlead_net_setting {
  const char* name;
  const char* value;
} fairlead_net_setting;

typedef struct fairlead_net_domain_options {
  size_t struct_size;
  const fairlead_net_setting* settings;
  size_t settings_count;
  /** Upper limits of a buffer: total bytes, bytes of a segment, number of segments. 0: the library's limits. */
  uint64_t buffer_bytes;
  uint64_t segment_bytes;
  uint64_t segments;
} fairlead_net_domain_options;

/** Opens a domain. `options` may be null. A process may have several domains. `invalid` names the setting, environment
 * variable or limit that is unknown or out of range. */
fairlead_status fairlead_net_domain_open(const fairlead_net_domain_options* options, fairlead_net_domain** domain);
/** Closes the domain: nothing can be created in it afterwards. `bad_state` (nothing changed) while it has machines or
 * buffers. Free the handle afterwards. */
fairlead_status fairlead_net_domain_close(fairlead_net_domain* domain);
/** Frees the handle. Remaining machines and buffers keep the domain alive. */
void fairlead_net_domain_free(fairlead_net_domain* domain);
/** The limits of a buffer. 0 if `domain` is null. */
uint64_t fairlead_net_domain_buffer_size_max(const fairlead_net_domain* domain);
uint64_t fairlead_net_domain_segment_size_max(const fairlead_net_domain* domain);
uint64_t fairlead_net_domain_segments_max(const fairlead_net_domain* domain);

/* ---- addresses: nid@network:pid:portal:tmid, e.g. 10.0.0.5@udp:20480:34:1, [::1]@udp:20480:34:1, 0@lo:20480:34:1 */

/** Writes the nids (network identifiers) on which a machine of this process can start, one per line. Returns 0 and
 * writes an empty text if the kernel does not list them. */
size_t fairlead_net_local_nids(char* text, size_t size);
/** Orders two addresses by their nid only: *order < 0, 0 or > 0. `invalid`: an address is malformed. */
fairlead_status fairlead_net_compare_nids(const char* a, const char* b, int* order);
/** Writes the address of a machine on a named host: ("server:20480", "34:1"). Asks the system's resolver, which may
 * take seconds. `invalid`: malformed, or `size` is too small. `not_available`: the host has no address. */
fairlead_status fairlead_net_resolve(const char* host, const char* rest, char* text, size_t size);

/* ---- events */

/** The completion of an operation, or (is_final false) one message in a receive buffer that stays queued. Valid during
 * the callback. */
typedef struct fairlead_net_buffer_event {
  size_t struct_size;
  /** The buffer. If it was freed in a callback: a substitute that is valid in this callback. */
  fairlead_net_buffer* buffer;
  fairlead_net_machine* machine; /**< the buffer was queued with it; null if it was freed in a callback */
  fairlead_net_queue queue;
  fairlead_status status;
  /** True: the buffer belongs to the program again, which may add it in this callback. False: the buffer stays queued,
   * and the program may read only [offset, offset + length). */
  bool is_final;
  uint64_t length;                      /**< bytes received, if an operation of a receive queue succeeded; else 0 */
  uint64_t offset;                      /**< offset of a message in the buffer; else 0 */
  uint64_t room;                        /**< bytes left for further messages; 0 in a final event */
  int64_t time_ns;                      /**< when the engine completed it */
  const fairlead_net_end_point* sender; /**< the sender of a message; else null. Copy it to keep it */
  const void* loan;                     /**< a message by reference, `length` bytes; else null */
  void* loan_owner;                     /**< for the library only */
} fairlead_net_buffer_event;

typedef void (*fairlead_net_buffer_callback)(const fairlead_net_buffer_event* event, void* user);

/** Motr defines the numbers. */
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
  FAIRLEAD_NET_EVENT_ERROR = 0, /**< status no_buffer: messages were dropped; restarted: the host engine has ended */
  FAIRLEAD_NET_EVENT_STATE_CHANGE = 1, /**< to next_state: started, stopped, or failed with its cause in `status` */
  FAIRLEAD_NET_EVENT_DIAGNOSTIC = 2,   /**< `text` only */
  FAIRLEAD_NET_EVENT_PEER_GONE = 3,    /**< the engine `peer`, of which the machine has end points, is lost */
  FAIRLEAD_NET_EVENT_STATISTICS = 4    /**< `text`: a line of key=value (fairlead_net_machine_report_statistics()) */
} fairlead_net_machine_event_kind;

/** An event of the machine itself. Valid during the callback. */
typedef struct fairlead_net_machine_event {
  size_t struct_size;
  fairlead_net_machine_event_kind kind;
  fairlead_net_machine* machine;
  int64_t time_ns;
  fairlead_status status;
  fairlead_net_machine_state next_state;
  const fairlead_net_end_point* end_point; /**< with started: the machine's own end point; else null */
  const char* text;                        /**< one line, or empty */
  const char* peer;                        /**< peer_gone: "10.0.0.5@udp:20480"; else empty */
} fairlead_net_machine_event;

typedef void (*fairlead_net_machine_callback)(const fairlead_net_machine_event* event, void* user);

/* ---- end points */

/** Returns one more reference; null if `end_point` is null. Also null, with a reason, if there is no memory. */
fairlead_net_end_point* fairlead_net_end_point_copy(const fairlead_net_end_point* end_point);
/** Releases a reference. Free all references before you close their machine. */
void fairlead_net_end_point_free(fairlead_net_end_point* end_point);
/** Writes the address. */
size_t fairlead_net_end_point_address(const fairlead_net_end_point* end_point, char* text, size_t size);
/** Whether both belong to the same machine and name the same address. */
bool fairlead_net_end_point_equal(const fairlead_net_end_point* a, const fairlead_net_end_point* b);

/* ---- buffers */

typedef struct fairlead_net_segment {
  void* memory;
  uint64_t length;
} fairlead_net_segment;

/** Allocates `size` bytes, zeroed and aligned. If a network machine of the domain has started before, peers of this
 * host can access the memory directly. `invalid`: 0 bytes. `too_big`: above the domain's limit. `no_memory`. */
fairlead_status fairlead_net_buffer_allocate(fairlead_net_domain* domain, uint64_t size, fairlead_net_buffer** buffer);
/** Uses the caller's memory, which must outlive the buffer. `invalid`: there is no segment, or one is empty or null.
 * `too_big`: more segments or bytes than the domain's limits. */
fairlead_status fairlead_net_buffer_borrow(fairlead_net_domain* domain, const fairlead_net_segment* segments,
                                           size_t count, fairlead_net_buffer** buffer);
/** Frees a buffer. If it is queued, cancels it and waits for its final event. In a callback it waits only until the
 * memory is no longer in use; the final event comes after that callback. Do not free buffers of a pool. */
void fairlead_net_buffer_free(fairlead_net_buffer* buffer);
/** Sets the callback for the events of one queue. `bad_state` while the buffer is queued or one of its callbacks runs.
 * Exception: its final callback may set the callbacks of the other queues. */
fairlead_status fairlead_net_buffer_set_callback(fairlead_net_buffer* buffer, fairlead_net_queue queue,
                                                 fairlead_net_buffer_callback callback, void* user);
/** The same for all queues. `bad_state` in every callback of the buffer. */
fairlead_status fairlead_net_buffer_set_callbacks(fairlead_net_buffer* buffer, fairlead_net_buffer_callback callback,
                                                  void* user);
/** A pointer for the program; the library does not use it. Set it while no callback of the buffer runs. */
void fairlead_net_buffer_set_user(fairlead_net_buffer* buffer, void* user);
void* fairlead_net_buffer_user(const fairlead_net_buffer* buffer);
uint64_t fairlead_net_buffer_size(const fairlead_net_buffer* buffer);
size_t fairlead_net_buffer_segment_count(const fairlead_net_buffer* buffer);
/** A segment; null and 0 if the index is out of range. */
fairlead_net_segment fairlead_net_buffer_segment(const fairlead_net_buffer* buffer, size_t index);
/** Copy across segments; return the number of bytes copied, which is less if the buffer ends first. */
uint64_t fairlead_net_buffer_write(fairlead_net_buffer* buffer, uint64_t offset, const void* from, uint64_t length);
uint64_t fairlead_net_buffer_read(const fairlead_net_buffer* buffer, uint64_t offset, void* to, uint64_t length);
/** Copies the descriptor of the last successful add to a passive queue, all zero before the first. Not while another
 * thread adds the buffer. */
void fairlead_net_buffer_descriptor(const fairlead_net_buffer* buffer, uint8_t to[FAIRLEAD_NET_DESCRIPTOR_SIZE]);
bool fairlead_net_buffer_is_queued(const fairlead_net_buffer* buffer);

/** The contents of a descriptor. */
typedef struct fairlead_net_descriptor_facts {
  size_t struct_size;
  fairlead_net_queue queue; /**< of the passive buffer */
  uint64_t size;            /**< bytes that may be written (receive) or read (send) */
  char address[128];        /**< of the passive buffer's machine */
} fairlead_net_descriptor_facts;

/** Decodes a descriptor. `invalid`: fairlead_net_explain_last() names the fault. An add makes the same checks. */
fairlead_status fairlead_net_descriptor_inspect(const void* descriptor, size_t size,
                                                fairlead_net_descriptor_facts* facts);

/** Moves a message by reference out of its event, in the callback. Freeing the loan returns the message to its sender.
 * Null if the event has no such message, or if memory is exhausted. */
fairlead_net_loan* fairlead_net_event_keep_loan(const fairlead_net_buffer_event* event);
void fairlead_net_loan_free(fairlead_net_loan* loan);

/* ---- machines: before the start */

/** Creates a machine. `callback` may be null. */
fairlead_status fairlead_net_machine_create(fairlead_net_domain* domain, fairlead_net_machine_callback callback,
                                            void* user, fairlead_net_machine** machine);
/** Frees a machine. Stops a running machine with FAIRLEAD_NET_ABORT, and waits until it has stopped; events until then
 * are delivered. In a callback of the machine itself it does not wait. */
void fairlead_net_machine_free(fairlead_net_machine* machine);
/** Binds the machine's event thread to these CPUs; with synchronous delivery there is no such thread. `bad_state`
 * unless initialized; `invalid`: no CPU given. */
fairlead_status fairlead_net_machine_confine(fairlead_net_machine* machine, const unsigned* cpus, size_t count);
/** Selects synchronous delivery: fairlead_net_machine_deliver_all() delivers buffer events, and the machine has no
 * thread. The calls that deliver or wait check deadlines, deliver machine events and complete a stop. `bad_state`
 * unless initialized. */
fairlead_status fairlead_net_machine_deliver_synchronously(fairlead_net_machine* machine);
/** Requests FAIRLEAD_NET_EVENT_STATISTICS at this interval. `bad_state` unless initialized; `invalid`: not 1 ms to 1
 * day. */
fairlead_status fairlead_net_machine_report_statistics(fairlead_net_machine* machine, int64_t every_ns);

/* ---- machines: start and stop */

typedef enum fairlead_net_stop_mode {
  FAIRLEAD_NET_DRAIN = 0, /**< waits until each buffer has completed */
  FAIRLEAD_NET_ABORT = 1  /**< cancels all buffers */
} fairlead_net_stop_mode;

/** Starts the machine. A malformed address fails at once (`invalid`), and the machine is then failed. Any other outcome
 * arrives as an event: started or failed. `bad_state` unless initialized. */
fairlead_status fairlead_net_machine_start(fairlead_net_machine* machine, const char* address);
/** The same, and waits for the outcome. `bad_state` in a callback of this machine. not_available: the address is not
 * local, or no tmid is free. in_use. invalid. system. */
fairlead_status fairlead_net_machine_start_and_wait(fairlead_net_machine* machine, const char* address);
/** Stops the machine; an event reports `stopped`. `bad_state` unless initialized, starting or started; abort is also
 * allowed while stopping. `invalid`: another mode; nothing has changed. */
fairlead_status fairlead_net_machine_stop(fairlead_net_machine* machine, fairlead_net_stop_mode mode);
/** The same, and waits until the machine has stopped. `bad_state` in a callback of this machine. */
fairlead_status fairlead_net_machine_stop_and_wait(fairlead_net_machine* machine, fairlead_net_stop_mode mode);
/** Closes the machine. `bad_state` (nothing changed) unless initialized, stopped or failed, and while the program holds
 * references to its end points. Free the handle afterwards. */
fairlead_status fairlead_net_machine_close(fairlead_net_machine* machine);
fairlead_net_machine_state fairlead_net_machine_get_state(const fairlead_net_machine* machine);
/** Why the start failed, as a status and one line; ok and empty unless failed. `text` may be null if `size` is 0. */
fairlead_status fairlead_net_machine_failure(const fairlead_net_machine* machine, char* text, size_t size);

/** Returns a reference to the machine's own end point, which the caller frees; null before started. */
fairlead_net_end_point* fairlead_net_machine_end_point(const fairlead_net_machine* machine);
/** Returns a reference to the end point of another (or this) machine. Sends nothing. `invalid`: the address is
 * malformed, contains `*`, or is out of range. `unreachable`: it is of another network. `bad_state` unless started. */
fairlead_status fairlead_net_machine_create_end_point(fairlead_net_machine* machine, const char* address,
                                                      fairlead_net_end_point** end_point);
/** Writes one line about the host behind an end point. */
size_t fairlead_net_machine_describe(const fairlead_net_machine* machine, const fairlead_net_end_point* end_point,
                                     char* text, size_t size);
/** Writes one line that explains why an operation with an end point ended with `status`: what happened to its host, or
 * that there is no such transfer machine, receive buffer or passive buffer. */
size_t fairlead_net_machine_describe_failure(const fairlead_net_machine* machine,
                                             const fairlead_net_end_point* end_point, fairlead_status status,
                                             char* text, size_t size);

/* ---- invitations: how two programs connect (fairlead/net/invitation.hpp) */

/** Sends the machine's address, and the descriptors of buffers in its passive queues, over a connected stream socket.
 * The other end makes the same call. Returns a reference to its end point in *peer, and its descriptors one after the
 * other in `descriptors`. Before the call *descriptors_count is the room in `descriptors`, after it the number
 * received. `descriptors` may be null if the room is 0. `timed_out`: the deadline passed. `bad_state`: the machine is
 * not started, or a buffer is not queued. `invalid`: the other end sent something malformed. `system`: it closed the
 * socket, or uses another protocol. */
fairlead_status fairlead_net_machine_meet(fairlead_net_machine* machine, int socket,
                                          const fairlead_net_buffer* const* buffers, size_t count, int64_t deadline_ns,
                                          fairlead_net_end_point** peer, uint8_t* descriptors,
                                          size_t* descriptors_count);
/** The same with a line of text, which the program transfers. Returns the length of the text; on failure 0, with a
 * reason. */
size_t fairlead_net_machine_invite(const fairlead_net_machine* machine, const fairlead_net_buffer* const* buffers,
                                   size_t count, char* text, size_t size);
fairlead_status fairlead_net_machine_accept(fairlead_net_machine* machine, const char* invitation,
                                            fairlead_net_end_point** peer, uint8_t* descriptors,
                                            size_t* descriptors_count);

/* ---- machines: buffers */

/** The parameters of an add. Fields that do not apply to the queue are ignored. */
typedef struct fairlead_net_operation {
  size_t struct_size;
  fairlead_net_queue queue;
  /** MESSAGE_SEND, PASSIVE_SEND, ACTIVE_SEND: bytes from the start of the buffer; 0: all. */
  uint64_t length;
  /** Deadline of the whole operation; 0 and FAIRLEAD_NET_NEVER: none. */
  int64_t deadline_ns;
  /** MESSAGE_SEND: the destination, created by the same machine; not needed after the call. */
  const fairlead_net_end_point* to;
  /** ACTIVE_*: the descriptor; not needed after the call. */
  const void* descriptor;
  size_t descriptor_size;
  /** MESSAGE_RECEIVE: the buffer completes when fewer than size_min bytes are left, or when messages_max messages have
   * arrived. size_min 0 is the whole buffer: one message per buffer. messages_max 0 is 1. */
  uint64_t size_min;
  uint32_t messages_max;
  bool takes_loans;  /**< MESSAGE_RECEIVE: accepts messages by reference */
  bool is_loan;      /**< MESSAGE_SEND: sends the message by reference to a receiver on this host */
  bool is_confirmed; /**< MESSAGE_SEND: the event confirms that a buffer took it, or gives the reason */
  uint8_t reserved;  /**< 0, else `invalid` */
} fairlead_net_operation;

/** Queues a buffer. ok guarantees one final event; with any other status nothing has changed. The statuses and their
 * causes are those of TransferMachine::add() (fairlead/net/transfer_machine.hpp): bad_state, invalid, not_permitted,
 * too_big, unreachable, stale, too_late, message_size, again, no_memory. */
fairlead_status fairlead_net_machine_add(fairlead_net_machine* machine, fairlead_net_buffer* buffer,
                                         const fairlead_net_operation* operation);
/** Queues buffers in this order, as an add of each would, up to the first one that is refused. *added is the number
 * queued. It takes the lock only once. */
fairlead_status fairlead_net_machine_add_all(fairlead_net_machine* machine, fairlead_net_buffer* const* buffers,
                                             size_t count, const fairlead_net_operation* operation, size_t* added);
/** The same for transfers: *operations[i] is that of buffers[i], because a descriptor serves once. `invalid`, and
 * nothing was queued, unless all of them are ACTIVE_RECEIVE or all are ACTIVE_SEND. */
fairlead_status fairlead_net_machine_add_transfers(fairlead_net_machine* machine, fairlead_net_buffer* const* buffers,
                                                   size_t count, const fairlead_net_operation* const* operations,
                                                   size_t* added);
/** Cancels an operation. False: the buffer is not, or no longer, queued here. True guarantees exactly one final event:
 * canceled, or the actual result if the operation finished first. */
bool fairlead_net_machine_cancel(fairlead_net_machine* machine, fairlead_net_buffer* buffer);
/** Largest message; 0 before started. */
uint64_t fairlead_net_machine_message_size_max(const fairlead_net_machine* machine);

/* ---- machines: synchronous delivery. All return `bad_state` unless the machine is started or stopping, and delivers
   synchronously. */

/** Makes progress, then delivers at most `budget` pending events. Sets *delivered to their number, unless null. */
fairlead_status fairlead_net_machine_deliver_all(fairlead_net_machine* machine, size_t budget, size_t* delivered);
/** Makes progress; true if an event is pending. */
bool fairlead_net_machine_pending(fairlead_net_machine* machine);
/** Waits until an event is pending or the deadline passes. *is_pending says which; `is_pending` may be null.
 * `bad_state` also while another thread waits. Returns early when the machine is stopped. */
fairlead_status fairlead_net_machine_wait(fairlead_net_machine* machine, int64_t deadline_ns, bool* is_pending);
/** Waits until one of the machines has a pending event, and sets *index. `timed_out`: no event by the deadline.
 * `invalid`: no machines. */
fairlead_status fairlead_net_wait_any(fairlead_net_machine* const* machines, size_t count, int64_t deadline_ns,
                                      size_t* index);
/** For poll and epoll. After an arm that sets *is_armed to true, the descriptor becomes readable with the next event,
 * and with a stop. False: events are pending; deliver them first. */
fairlead_status fairlead_net_machine_arm(fairlead_net_machine* machine, bool* is_armed);
/** The machine's descriptor, from started to its stop; otherwise -1. Threads may sleep on it until the machine is
 * freed. */
int fairlead_net_machine_descriptor(const fairlead_net_machine* machine);
/** Calls `signal` once, as soon as an event is pending. Replaces an earlier signal that was not called yet. */
fairlead_status fairlead_net_machine_notify(fairlead_net_machine* machine, void (*signal)(void* user), void* user);

/* ---- machines: figures */

typedef struct fairlead_net_queue_statistics {
  uint64_t adds;
  uint64_t deletes; /**< operations that a cancel or a stop asked to end; deadlines do not count */
  uint64_t successes;
  uint64_t failures;
  int64_t time_in_queue_ns; /**< sum of the times from the add to the final event */
  uint64_t bytes_total;
  uint64_t bytes_max;
} fairlead_net_queue_statistics;

typedef struct fairlead_net_statistics {
  size_t struct_size;
  fairlead_net_queue_statistics queues[FAIRLEAD_NET_QUEUES];
} fairlead_net_statistics;

/** A consistent snapshot. `reset` also sets the counts to zero, atomically; then `statistics` may be null. */
fairlead_status fairlead_net_machine_statistics(fairlead_net_machine* machine, bool reset,
                                                fairlead_net_statistics* statistics);
/** Messages since the start that arrived while no queued buffer could take them. */
uint64_t fairlead_net_machine_messages_dropped(const fairlead_net_machine* machine);
/** Calls `each` for each counter of the engine that serves this machine, before it returns. */
void fairlead_net_machine_counters(const fairlead_net_machine* machine,
                                   void (*each)(const char* name, uint64_t value, void* user), void* user);

/* ---- pools of receive buffers */

/** Any colour, or no particular colour. */
#define FAIRLEAD_NET_ANY_COLOUR UINT32_MAX

typedef struct fairlead_net_pool_options {
  size_t struct_size;
  uint64_t buffer_size; /**< bytes, of each buffer; 0: 64 KiB */
  uint32_t colours;     /**< number of colours, 0..1024, numbered from 0. A colour stands for a processor */
  uint32_t threshold;   /**< 0: 2 */
  /** Called without a lock when fewer than `threshold` buffers are left, and when a buffer is put into the empty pool.
   * May be null. */
  void (*on_below_threshold)(void* user);
  void (*on_not_empty)(void* user);
  void* user;
} fairlead_net_pool_options;

/** Creates an empty pool. `options` may be null. */
fairlead_status fairlead_net_pool_create(const fairlead_net_domain* domain, const fairlead_net_pool_options* options,
                                         fairlead_net_pool** pool);
/** Frees the handle. The buffers live until the attached machines are gone, too. Do not call it in a callback of the
 * pool. */
void fairlead_net_pool_free(fairlead_net_pool* pool);
/** Adds `count` new buffers. *made is the number of buffers that it could make; `made` may be null. An error if it
 * could make none. */
fairlead_status fairlead_net_pool_provision(fairlead_net_pool* pool, size_t count, size_t* made);
/** Destroys the least recently used buffer. False if the pool has no more than `threshold` buffers. */
bool fairlead_net_pool_prune(fairlead_net_pool* pool);
/** Takes a buffer for the caller's use, of that colour if there is one. Null, with a reason, if the pool is empty or
 * has no such colour. Return the buffer with put; never free it. */
fairlead_net_buffer* fairlead_net_pool_get(fairlead_net_pool* pool, uint32_t colour);
/** Returns a buffer that the caller has from get, or from a final event with status ok. `invalid`: the buffer is of
 * another pool, or the colour does not exist. `bad_state`: the buffer is queued, or already in the pool. */
fairlead_status fairlead_net_pool_put(fairlead_net_pool* pool, fairlead_net_buffer* buffer, uint32_t colour);
size_t fairlead_net_pool_free_count(const fairlead_net_pool* pool);
size_t fairlead_net_pool_size(const fairlead_net_pool* pool);

/** How a machine uses the buffers of a pool to receive messages. */
typedef struct fairlead_net_provision {
  size_t struct_size;
  fairlead_net_buffer_callback callback; /**< for these receives */
  void* user;
  uint64_t size_min;     /**< as in fairlead_net_operation */
  uint32_t messages_max; /**< as in fairlead_net_operation */
  uint32_t length;       /**< number of buffers to keep queued; 0: 2 */
  uint32_t colour;       /**< one of the pool's colours */
  bool has_colour;       /**< false: any colour */
  bool takes_loans;
  uint8_t reserved[2]; /**< 0, else `invalid` */
} fairlead_net_provision;

/** Receives messages into buffers of the pool, which the engine takes automatically. `bad_state` unless initialized.
 * `invalid`: the pool is of another domain, there is no callback, or a value is out of range. */
fairlead_status fairlead_net_machine_attach(fairlead_net_machine* machine, const fairlead_net_pool* pool,
                                            const fairlead_net_provision* provision);
/** `bad_state`: no pool is attached, or the machine has stopped. `invalid`: the pool has no such colour. */
fairlead_status fairlead_net_machine_set_receive_length(fairlead_net_machine* machine, uint32_t length);
fairlead_status fairlead_net_machine_set_receive_colour(fairlead_net_machine* machine, uint32_t colour);
/** How many of `length` buffers are missing because the pool is empty. */
uint32_t fairlead_net_machine_receive_deficit(const fairlead_net_machine* machine);

#ifdef __cplusplus
}
#endif

#endif
