/* AM-2 active messages over UDP, with the names and types of AMUDP 3.17. Programs written for AM-2 compile unmodified,
 * and objects compiled against AMUDP can be relinked (docs/amudp.md). <fairlead/am.hpp> describes the model. C and C++.
 *
 * Errors. Calls return AM_OK or a code; if AMX_VerboseErrors is set, a line on stderr names the reason.
 *   AM_ERR_NOT_INIT  AM_Init was not called, or for AMX_SPMD calls AMX_SPMDStartup.
 *   AM_ERR_BAD_ARG   An argument is null or out of range, or nothing is mapped at the index of a request.
 *   AM_ERR_RESOURCE  A limit is reached, an entry is in use or free, or the call is not allowed now (in a handler).
 *   AM_ERR_IN_USE    An asynchronous request finds no free credit.
 *
 * Threads. One thread at a time uses an AM_SEQ bundle and its endpoints; any number use an AM_PAR bundle. Handlers run
 * inside AM_Poll, AM_WaitSema, the SPMD calls that wait, and requests that wait for a credit. In interrupt mode they
 * also run in a thread of the bundle. A handler may not poll, wait or send requests; a request's handler may send one
 * reply.
 */
#ifndef FAIRLEAD_AMUDP_H
#define FAIRLEAD_AMUDP_H

#include <netinet/in.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if !defined(AMUDP) && !defined(AMMPI)
#define AMUDP 1
#endif
#define AMUDP_LIBRARY_VERSION_MAJOR 3
#define AMUDP_LIBRARY_VERSION_MINOR 17
#define AMUDP_LIBRARY_VERSION_STR "3.17 (Fairlead)"

/* Objects of debug builds call the start-up functions by other names. Here both names are the same function. */
#ifdef AMUDP_DEBUG
#define AMUDP_SUFFIXED(name) name##_DEBUG
#else
#define AMUDP_SUFFIXED(name) name##_NDEBUG
#endif

/* ---- limits */

#define AMUDP_MAX_SHORT 16     /* arguments */
#define AMUDP_MAX_MEDIUM 65000 /* bytes */
#define AMUDP_MAX_LONG 65000   /* bytes; the calls accept up to 2^30 */
#define AMUDP_MAX_NUMHANDLERS 256
#define AMUDP_INIT_NUMTRANSLATIONS 256
#define AMUDP_MAX_NUMTRANSLATIONS (1U << 20)
#define AMUDP_MAX_SEGLENGTH ((uintptr_t)-1)
#define AMUDP_MAX_NETWORKDEPTH 1024 /* requests in flight to one peer */
#define AMUDP_MAX_SPMDPROCS AMUDP_MAX_NUMTRANSLATIONS

#define AM_MaxShort() AMUDP_MAX_SHORT
#define AM_MaxMedium() AMUDP_MAX_MEDIUM
#define AM_MaxLong() AMUDP_MAX_LONG
#define AM_MaxNumHandlers() AMUDP_MAX_NUMHANDLERS
#define AM_GetNumHandlers(ep, count) ((ep) ? (*(count) = AMUDP_MAX_NUMHANDLERS, AM_OK) : AM_ERR_BAD_ARG)
#define AM_SetNumHandlers(ep, count) \
  ((ep) ? ((count) == AMUDP_MAX_NUMHANDLERS ? AM_OK : AM_ERR_RESOURCE) : AM_ERR_BAD_ARG)
#define AM_MaxNumTranslations(count) (*(count) = AMUDP_MAX_NUMTRANSLATIONS, AM_OK)

/* ---- types */

typedef uint64_t tag_t;
typedef uint8_t handler_t;
typedef uint32_t amudp_node_t;
/* Name of an endpoint: IPv4 address and UDP port of its process; sin_zero contains the endpoint's number. */
typedef struct sockaddr_in en_t;
typedef struct amudp_eb* eb_t;
typedef struct amudp_ep* ep_t;
typedef int op_t;
typedef uint64_t amx_tick_t;
typedef enum { amudp_Short = 0, amudp_Medium = 1, amudp_Long = 2, amudp_NumCategories = 3 } amudp_category_t;

/* Counters of an endpoint, by category. Latencies are not measured: RequestMinLatency keeps the largest value. Members
 * about retransmission, squashed replies and order stay 0. */
typedef struct {
  uint64_t RequestsSent[amudp_NumCategories];
  uint64_t RepliesSent[amudp_NumCategories];
  uint64_t RequestsRetransmitted[amudp_NumCategories]; /* 0: the engine's statistics count resends */
  uint64_t RepliesRetransmitted[amudp_NumCategories];
  uint64_t RepliesSquashed[amudp_NumCategories];
  uint64_t RequestsReceived[amudp_NumCategories];
  uint64_t RepliesReceived[amudp_NumCategories];
  uint64_t ReturnedMessages;
  uint64_t OutOfOrderRequests;
  uint64_t OutOfOrderReplies;
  amx_tick_t RequestMinLatency;
  amx_tick_t RequestMaxLatency;
  amx_tick_t RequestSumLatency;
  uint64_t RequestDataBytesSent[amudp_NumCategories]; /* bytes of arguments and data */
  uint64_t ReplyDataBytesSent[amudp_NumCategories];
  uint64_t RequestTotalBytesSent[amudp_NumCategories]; /* the same, and 48 bytes of header per message */
  uint64_t ReplyTotalBytesSent[amudp_NumCategories];
  uint64_t TotalBytesSent;
} amudp_stats_t;

#ifdef __cplusplus
typedef void (*amudp_handler_fn_t)(void);
#else
typedef void (*amudp_handler_fn_t)();
#endif
typedef void (*AMUDP_preHandlerCallback_t)(amudp_category_t category, int is_request, int handler, void* token,
                                           void* data, size_t length, int count, uint32_t* arguments);
typedef void (*AMUDP_postHandlerCallback_t)(amudp_category_t category, int is_request);

/* A returned message: the third argument of handler 0, f(int status, op_t op, void *), points to it. Valid until
 * handler 0 returns. Without a handler 0 a returned message ends the process. */
typedef struct {
  int translation; /* index of the destination of a request; -1 for a reply */
  handler_t handler;
  int count; /* of arguments */
  int32_t arguments[AMUDP_MAX_SHORT];
  const void* data;
  size_t length; /* bytes of data */
} amudp_returned_t;

/* ---- constants */

#define AM_NONE 0 /* tag: no endpoint may send here */
#define AM_ALL 1  /* tag: every endpoint may */

typedef enum { AM_NOEVENTS, AM_NOTEMPTY, AM_NUMEVENTMASKS } amudp_eventmask_t;
typedef enum { AM_SEQ, AM_PAR, AM_NUM_BUNDLE_MODES } amudp_bundle_mode_t;

#define AM_OK 0
#define AM_ERR_NOT_INIT 1
#define AM_ERR_BAD_ARG 2
#define AM_ERR_RESOURCE 3
#define AM_ERR_NOT_SENT 4
#define AM_ERR_IN_USE 5

/* Status of a returned message. */
#define EBADARGS 1
#define EBADENTRY 2
#define EBADTAG 3
#define EBADHANDLER 4
#define EBADSEGOFF 5
#define EBADLENGTH 6
#define EBADENDPOINT 7
#define ECONGESTION 8
#define EUNREACHABLE 9
#define EREPLYREJECTED 10

/* Operation of a returned message. */
#define AM_REQUEST_M 1
#define AM_REQUEST_IM 2
#define AM_REQUEST_XFER_M 3
#define AM_REPLY_M 4
#define AM_REPLY_IM 5
#define AM_REPLY_XFER_M 6

/* ---- the library */

extern int AMUDP_PoliteSync;         /* no effect: barriers and gathers always spin for a moment, then sleep */
extern int AMX_VerboseErrors;        /* not 0: a line on stderr explains each error */
extern int AMX_SilentMode;           /* no effect: the library writes only errors */
extern const char* AMX_ProcessLabel; /* each line on stderr begins with it */
/* Writes the text, in printf's format, to stderr and aborts the process. */
/* clang-format off */
#ifdef __GNUC__
__attribute__((__format__(__printf__, 1, 2)))
#endif
extern void AMX_FatalErr(const char* text, ...);
/* clang-format on */

#define AM_Init AMUDP_SUFFIXED(AM_Init_AMUDP)
extern int AM_Init_AMUDP_NDEBUG(void);
extern int AM_Init_AMUDP_DEBUG(void);
/* Undoes one AM_Init. The last one tells all peers that this process leaves, and frees all bundles and endpoints. */
extern int AM_Terminate(void);
/* Sets the local IPv4 address, in host byte order, of bundles made later. The default is 127.0.0.1. */
extern int AMUDP_SetUDPInterface(uint32_t address);

/* ---- bundles and endpoints */

/* `type` is AM_SEQ or AM_PAR. AM_ERR_RESOURCE: no engine could be opened; a line on stderr gives the reason. */
extern int AM_AllocateBundle(int type, eb_t* bundle);
/* Also frees the endpoints of the bundle. */
extern int AM_FreeBundle(eb_t bundle);
extern int AM_AllocateEndpoint(eb_t bundle, ep_t* endpoint, en_t* name);
extern int AM_FreeEndpoint(ep_t endpoint);
extern int AM_MoveEndpoint(ep_t endpoint, eb_t from, eb_t to);
/* Sets the credits to each peer, 1 to AMUDP_MAX_NETWORKDEPTH. Ignores `endpoints`. May be called once; afterwards the
 * translation table is fixed, and AM_Map, AM_MapAny and AM_UnMap return AM_ERR_RESOURCE. */
extern int AM_SetExpectedResources(ep_t endpoint, int endpoints, int outstanding_requests);
extern int AM_MaxSegLength(uintptr_t* length);
/* Long messages write into the segment, and gets read from it. `length` is in bytes. */
extern int AM_SetSeg(ep_t endpoint, void* base, uintptr_t length);
extern int AM_GetSeg(ep_t endpoint, void** base, uintptr_t* length);
/* Requests to the endpoint must carry this tag, unless it is AM_ALL. The tag of a new endpoint is AM_NONE. */
extern int AM_SetTag(ep_t endpoint, tag_t tag);
extern int AM_GetTag(ep_t endpoint, tag_t* tag);

/* The translation table: peers by index. Requests to an entry carry its tag. AM_ERR_RESOURCE: the entry is in use (map)
 * or free (the others). */
extern int AM_Map(ep_t endpoint, int index, en_t name, tag_t tag);
extern int AM_MapAny(ep_t endpoint, int* index, en_t name, tag_t tag);
extern int AM_UnMap(ep_t endpoint, int index);
#define AM_Unmap AM_UnMap
/* Returns AM_OK if the entry is in use, else AM_ERR_RESOURCE. */
extern int AM_GetTranslationInuse(ep_t endpoint, int index);
extern int AM_GetTranslationTag(ep_t endpoint, int index, tag_t* tag);
extern int AM_GetTranslationName(ep_t endpoint, int index, en_t* name);
extern int AM_GetNumTranslations(ep_t endpoint, int* count);
extern int AM_SetNumTranslations(ep_t endpoint, int count);
extern int AMUDP_SetTranslationTag(ep_t endpoint, int index, tag_t tag);

/* Handlers are f(void *token, int...) for short messages, else f(void *token, void *data, size_t length, int...).
 * Handler 0 receives returned messages (amudp_returned_t). */
extern int _AM_SetHandler(ep_t endpoint, handler_t index, amudp_handler_fn_t function);
extern int _AM_SetHandlerAny(ep_t endpoint, handler_t* index, amudp_handler_fn_t function);
#define AM_SetHandler(ep, index, function) _AM_SetHandler((ep), (index), (amudp_handler_fn_t)(function))
#define AM_SetHandlerAny(ep, index, function) _AM_SetHandlerAny((ep), (index), (amudp_handler_fn_t)(function))
/* Calls `before` and `after` around each handler of the endpoint; null: none. */
extern int AMUDP_SetHandlerCallbacks(ep_t endpoint, AMUDP_preHandlerCallback_t before,
                                     AMUDP_postHandlerCallback_t after);

/* ---- events */

extern int AM_GetEventMask(eb_t bundle, int* mask);
extern int AM_SetEventMask(eb_t bundle, int mask);
/* Waits for a message and runs its handler. Returns at once if the event mask is AM_NOEVENTS, where AMUDP aborts. */
extern int AM_WaitSema(eb_t bundle);
/* Runs the handlers of messages that have arrived, without waiting. */
extern int AM_Poll(eb_t bundle);
/* 1: a thread of the bundle also runs handlers, while the application computes; the bundle becomes AM_PAR. 0: handlers
 * run in calls only, as initially. AM_ERR_RESOURCE: the mode is on already. Fairlead's extension of AM-2. */
extern int AMX_SetInterruptMode(eb_t bundle, int is_on);

/* ---- queries about a message; `token` is the handler's, valid until the handler returns */

extern int AM_GetSourceEndpoint(void* token, en_t* name);
extern int AM_GetDestEndpoint(void* token, ep_t* endpoint);
extern int AM_GetMsgTag(void* token, tag_t* tag);
/* Stores the index of the source in the translation table. AM_ERR_RESOURCE: it is not mapped. */
extern int AMUDP_GetSourceId(void* token, int* index);
/* Returns 1 if both name the same endpoint, else 0. */
extern int AMUDP_enEqual(en_t one, en_t other);

/* ---- statistics; the counters are of one endpoint, since it was made or reset */

extern const amudp_stats_t AMUDP_initial_stats;
extern int AMUDP_GetEndpointStatistics(ep_t endpoint, amudp_stats_t* stats);
extern int AMUDP_ResetEndpointStatistics(ep_t endpoint);
/* Adds the counters of `added` to those of `sum`. */
extern int AMUDP_AggregateStatistics(amudp_stats_t* sum, amudp_stats_t* added);
/* Returns the counters as text, which is valid until the next call. Also writes it to `file`, a FILE *, unless null.
 * `is_global` selects the heading. Not thread-safe. */
extern const char* AMUDP_DumpStatistics(void* file, amudp_stats_t* stats, int is_global);

/* ---- requests and replies; the variable arguments are `count` ints, at most AMUDP_MAX_SHORT
 *
 * Short messages carry arguments only, medium ones (I) also up to AMUDP_MAX_MEDIUM bytes of data. Long ones (Xfer)
 * write their data to `offset` in the segment of the destination. A get reads `length` bytes at `source_offset` in the
 * segment of `to`, writes them to `offset` in the segment of `from`, and then runs the handler there. Data may be
 * reused when the call returns.
 *
 * A request waits for a credit, and runs handlers meanwhile. An asynchronous one (is_async) returns AM_ERR_IN_USE
 * instead; its data must not change until its reply arrives or it is returned. A reply goes to the source of the
 * request, once. */

extern int AMUDP_Request(ep_t from, amudp_node_t to, handler_t handler, int count, ...);
extern int AMUDP_RequestI(ep_t from, amudp_node_t to, handler_t handler, void* data, size_t length, int count, ...);
extern int AMUDP_RequestXfer(ep_t from, amudp_node_t to, handler_t handler, void* data, size_t length, uintptr_t offset,
                             int is_async, int count, ...);
extern int AMUDP_GetXfer(ep_t from, amudp_node_t to, uintptr_t source_offset, handler_t handler, uintptr_t offset,
                         size_t length, int is_async, int count, ...);
extern int AMUDP_Reply(void* token, handler_t handler, int count, ...);
extern int AMUDP_ReplyI(void* token, handler_t handler, void* data, size_t length, int count, ...);
extern int AMUDP_ReplyXfer(void* token, handler_t handler, void* data, size_t length, uintptr_t offset, int count, ...);

extern int AMUDP_RequestVA(ep_t from, amudp_node_t to, handler_t handler, int count, va_list arguments);
extern int AMUDP_RequestIVA(ep_t from, amudp_node_t to, handler_t handler, void* data, size_t length, int count,
                            va_list arguments);
extern int AMUDP_RequestXferVA(ep_t from, amudp_node_t to, handler_t handler, void* data, size_t length,
                               uintptr_t offset, int is_async, int count, va_list arguments);
extern int AMUDP_ReplyVA(void* token, handler_t handler, int count, va_list arguments);
extern int AMUDP_ReplyIVA(void* token, handler_t handler, void* data, size_t length, int count, va_list arguments);
extern int AMUDP_ReplyXferVA(void* token, handler_t handler, void* data, size_t length, uintptr_t offset, int count,
                             va_list arguments);

/* clang-format off */
#define AMX_INTS1(a) (int32_t)(a)
#define AMX_INTS2(a, ...) (int32_t)(a), AMX_INTS1(__VA_ARGS__)
#define AMX_INTS3(a, ...) (int32_t)(a), AMX_INTS2(__VA_ARGS__)
#define AMX_INTS4(a, ...) (int32_t)(a), AMX_INTS3(__VA_ARGS__)
#define AMX_INTS5(a, ...) (int32_t)(a), AMX_INTS4(__VA_ARGS__)
#define AMX_INTS6(a, ...) (int32_t)(a), AMX_INTS5(__VA_ARGS__)
#define AMX_INTS7(a, ...) (int32_t)(a), AMX_INTS6(__VA_ARGS__)
#define AMX_INTS8(a, ...) (int32_t)(a), AMX_INTS7(__VA_ARGS__)
#define AMX_INTS9(a, ...) (int32_t)(a), AMX_INTS8(__VA_ARGS__)
#define AMX_INTS10(a, ...) (int32_t)(a), AMX_INTS9(__VA_ARGS__)
#define AMX_INTS11(a, ...) (int32_t)(a), AMX_INTS10(__VA_ARGS__)
#define AMX_INTS12(a, ...) (int32_t)(a), AMX_INTS11(__VA_ARGS__)
#define AMX_INTS13(a, ...) (int32_t)(a), AMX_INTS12(__VA_ARGS__)
#define AMX_INTS14(a, ...) (int32_t)(a), AMX_INTS13(__VA_ARGS__)
#define AMX_INTS15(a, ...) (int32_t)(a), AMX_INTS14(__VA_ARGS__)
#define AMX_INTS16(a, ...) (int32_t)(a), AMX_INTS15(__VA_ARGS__)

#define AM_Request0(ep, to, h) AMUDP_Request(ep, to, h, 0)
#define AM_Request1(ep, to, h, ...) AMUDP_Request(ep, to, h, 1, AMX_INTS1(__VA_ARGS__))
#define AM_Request2(ep, to, h, ...) AMUDP_Request(ep, to, h, 2, AMX_INTS2(__VA_ARGS__))
#define AM_Request3(ep, to, h, ...) AMUDP_Request(ep, to, h, 3, AMX_INTS3(__VA_ARGS__))
#define AM_Request4(ep, to, h, ...) AMUDP_Request(ep, to, h, 4, AMX_INTS4(__VA_ARGS__))
#define AM_Request5(ep, to, h, ...) AMUDP_Request(ep, to, h, 5, AMX_INTS5(__VA_ARGS__))
#define AM_Request6(ep, to, h, ...) AMUDP_Request(ep, to, h, 6, AMX_INTS6(__VA_ARGS__))
#define AM_Request7(ep, to, h, ...) AMUDP_Request(ep, to, h, 7, AMX_INTS7(__VA_ARGS__))
#define AM_Request8(ep, to, h, ...) AMUDP_Request(ep, to, h, 8, AMX_INTS8(__VA_ARGS__))
#define AM_Request9(ep, to, h, ...) AMUDP_Request(ep, to, h, 9, AMX_INTS9(__VA_ARGS__))
#define AM_Request10(ep, to, h, ...) AMUDP_Request(ep, to, h, 10, AMX_INTS10(__VA_ARGS__))
#define AM_Request11(ep, to, h, ...) AMUDP_Request(ep, to, h, 11, AMX_INTS11(__VA_ARGS__))
#define AM_Request12(ep, to, h, ...) AMUDP_Request(ep, to, h, 12, AMX_INTS12(__VA_ARGS__))
#define AM_Request13(ep, to, h, ...) AMUDP_Request(ep, to, h, 13, AMX_INTS13(__VA_ARGS__))
#define AM_Request14(ep, to, h, ...) AMUDP_Request(ep, to, h, 14, AMX_INTS14(__VA_ARGS__))
#define AM_Request15(ep, to, h, ...) AMUDP_Request(ep, to, h, 15, AMX_INTS15(__VA_ARGS__))
#define AM_Request16(ep, to, h, ...) AMUDP_Request(ep, to, h, 16, AMX_INTS16(__VA_ARGS__))

#define AM_RequestI0(ep, to, h, data, n) AMUDP_RequestI(ep, to, h, data, n, 0)
#define AM_RequestI1(ep, to, h, data, n, ...) AMUDP_RequestI(ep, to, h, data, n, 1, AMX_INTS1(__VA_ARGS__))
#define AM_RequestI2(ep, to, h, data, n, ...) AMUDP_RequestI(ep, to, h, data, n, 2, AMX_INTS2(__VA_ARGS__))
#define AM_RequestI3(ep, to, h, data, n, ...) AMUDP_RequestI(ep, to, h, data, n, 3, AMX_INTS3(__VA_ARGS__))
#define AM_RequestI4(ep, to, h, data, n, ...) AMUDP_RequestI(ep, to, h, data, n, 4, AMX_INTS4(__VA_ARGS__))
#define AM_RequestI5(ep, to, h, data, n, ...) AMUDP_RequestI(ep, to, h, data, n, 5, AMX_INTS5(__VA_ARGS__))
#define AM_RequestI6(ep, to, h, data, n, ...) AMUDP_RequestI(ep, to, h, data, n, 6, AMX_INTS6(__VA_ARGS__))
#define AM_RequestI7(ep, to, h, data, n, ...) AMUDP_RequestI(ep, to, h, data, n, 7, AMX_INTS7(__VA_ARGS__))
#define AM_RequestI8(ep, to, h, data, n, ...) AMUDP_RequestI(ep, to, h, data, n, 8, AMX_INTS8(__VA_ARGS__))
#define AM_RequestI9(ep, to, h, data, n, ...) AMUDP_RequestI(ep, to, h, data, n, 9, AMX_INTS9(__VA_ARGS__))
#define AM_RequestI10(ep, to, h, data, n, ...) AMUDP_RequestI(ep, to, h, data, n, 10, AMX_INTS10(__VA_ARGS__))
#define AM_RequestI11(ep, to, h, data, n, ...) AMUDP_RequestI(ep, to, h, data, n, 11, AMX_INTS11(__VA_ARGS__))
#define AM_RequestI12(ep, to, h, data, n, ...) AMUDP_RequestI(ep, to, h, data, n, 12, AMX_INTS12(__VA_ARGS__))
#define AM_RequestI13(ep, to, h, data, n, ...) AMUDP_RequestI(ep, to, h, data, n, 13, AMX_INTS13(__VA_ARGS__))
#define AM_RequestI14(ep, to, h, data, n, ...) AMUDP_RequestI(ep, to, h, data, n, 14, AMX_INTS14(__VA_ARGS__))
#define AM_RequestI15(ep, to, h, data, n, ...) AMUDP_RequestI(ep, to, h, data, n, 15, AMX_INTS15(__VA_ARGS__))
#define AM_RequestI16(ep, to, h, data, n, ...) AMUDP_RequestI(ep, to, h, data, n, 16, AMX_INTS16(__VA_ARGS__))

#define AM_RequestXfer0(ep, to, offset, h, data, n) AMUDP_RequestXfer(ep, to, h, data, n, offset, 0, 0)
#define AM_RequestXfer1(ep, to, offset, h, data, n, ...) AMUDP_RequestXfer(ep, to, h, data, n, offset, 0, 1, AMX_INTS1(__VA_ARGS__))
#define AM_RequestXfer2(ep, to, offset, h, data, n, ...) AMUDP_RequestXfer(ep, to, h, data, n, offset, 0, 2, AMX_INTS2(__VA_ARGS__))
#define AM_RequestXfer3(ep, to, offset, h, data, n, ...) AMUDP_RequestXfer(ep, to, h, data, n, offset, 0, 3, AMX_INTS3(__VA_ARGS__))
#define AM_RequestXfer4(ep, to, offset, h, data, n, ...) AMUDP_RequestXfer(ep, to, h, data, n, offset, 0, 4, AMX_INTS4(__VA_ARGS__))
#define AM_RequestXfer5(ep, to, offset, h, data, n, ...) AMUDP_RequestXfer(ep, to, h, data, n, offset, 0, 5, AMX_INTS5(__VA_ARGS__))
#define AM_RequestXfer6(ep, to, offset, h, data, n, ...) AMUDP_RequestXfer(ep, to, h, data, n, offset, 0, 6, AMX_INTS6(__VA_ARGS__))
#define AM_RequestXfer7(ep, to, offset, h, data, n, ...) AMUDP_RequestXfer(ep, to, h, data, n, offset, 0, 7, AMX_INTS7(__VA_ARGS__))
#define AM_RequestXfer8(ep, to, offset, h, data, n, ...) AMUDP_RequestXfer(ep, to, h, data, n, offset, 0, 8, AMX_INTS8(__VA_ARGS__))
#define AM_RequestXfer9(ep, to, offset, h, data, n, ...) AMUDP_RequestXfer(ep, to, h, data, n, offset, 0, 9, AMX_INTS9(__VA_ARGS__))
#define AM_RequestXfer10(ep, to, offset, h, data, n, ...) AMUDP_RequestXfer(ep, to, h, data, n, offset, 0, 10, AMX_INTS10(__VA_ARGS__))
#define AM_RequestXfer11(ep, to, offset, h, data, n, ...) AMUDP_RequestXfer(ep, to, h, data, n, offset, 0, 11, AMX_INTS11(__VA_ARGS__))
#define AM_RequestXfer12(ep, to, offset, h, data, n, ...) AMUDP_RequestXfer(ep, to, h, data, n, offset, 0, 12, AMX_INTS12(__VA_ARGS__))
#define AM_RequestXfer13(ep, to, offset, h, data, n, ...) AMUDP_RequestXfer(ep, to, h, data, n, offset, 0, 13, AMX_INTS13(__VA_ARGS__))
#define AM_RequestXfer14(ep, to, offset, h, data, n, ...) AMUDP_RequestXfer(ep, to, h, data, n, offset, 0, 14, AMX_INTS14(__VA_ARGS__))
#define AM_RequestXfer15(ep, to, offset, h, data, n, ...) AMUDP_RequestXfer(ep, to, h, data, n, offset, 0, 15, AMX_INTS15(__VA_ARGS__))
#define AM_RequestXfer16(ep, to, offset, h, data, n, ...) AMUDP_RequestXfer(ep, to, h, data, n, offset, 0, 16, AMX_INTS16(__VA_ARGS__))

#define AM_RequestXferAsync0(ep, to, offset, h, data, n) AMUDP_RequestXfer(ep, to, h, data, n, offset, 1, 0)
#define AM_RequestXferAsync1(ep, to, offset, h, data, n, ...) AMUDP_RequestXfer(ep, to, h, data, n, offset, 1, 1, AMX_INTS1(__VA_ARGS__))
#define AM_RequestXferAsync2(ep, to, offset, h, data, n, ...) AMUDP_RequestXfer(ep, to, h, data, n, offset, 1, 2, AMX_INTS2(__VA_ARGS__))
#define AM_RequestXferAsync3(ep, to, offset, h, data, n, ...) AMUDP_RequestXfer(ep, to, h, data, n, offset, 1, 3, AMX_INTS3(__VA_ARGS__))
#define AM_RequestXferAsync4(ep, to, offset, h, data, n, ...) AMUDP_RequestXfer(ep, to, h, data, n, offset, 1, 4, AMX_INTS4(__VA_ARGS__))
#define AM_RequestXferAsync5(ep, to, offset, h, data, n, ...) AMUDP_RequestXfer(ep, to, h, data, n, offset, 1, 5, AMX_INTS5(__VA_ARGS__))
#define AM_RequestXferAsync6(ep, to, offset, h, data, n, ...) AMUDP_RequestXfer(ep, to, h, data, n, offset, 1, 6, AMX_INTS6(__VA_ARGS__))
#define AM_RequestXferAsync7(ep, to, offset, h, data, n, ...) AMUDP_RequestXfer(ep, to, h, data, n, offset, 1, 7, AMX_INTS7(__VA_ARGS__))
#define AM_RequestXferAsync8(ep, to, offset, h, data, n, ...) AMUDP_RequestXfer(ep, to, h, data, n, offset, 1, 8, AMX_INTS8(__VA_ARGS__))
#define AM_RequestXferAsync9(ep, to, offset, h, data, n, ...) AMUDP_RequestXfer(ep, to, h, data, n, offset, 1, 9, AMX_INTS9(__VA_ARGS__))
#define AM_RequestXferAsync10(ep, to, offset, h, data, n, ...) AMUDP_RequestXfer(ep, to, h, data, n, offset, 1, 10, AMX_INTS10(__VA_ARGS__))
#define AM_RequestXferAsync11(ep, to, offset, h, data, n, ...) AMUDP_RequestXfer(ep, to, h, data, n, offset, 1, 11, AMX_INTS11(__VA_ARGS__))
#define AM_RequestXferAsync12(ep, to, offset, h, data, n, ...) AMUDP_RequestXfer(ep, to, h, data, n, offset, 1, 12, AMX_INTS12(__VA_ARGS__))
#define AM_RequestXferAsync13(ep, to, offset, h, data, n, ...) AMUDP_RequestXfer(ep, to, h, data, n, offset, 1, 13, AMX_INTS13(__VA_ARGS__))
#define AM_RequestXferAsync14(ep, to, offset, h, data, n, ...) AMUDP_RequestXfer(ep, to, h, data, n, offset, 1, 14, AMX_INTS14(__VA_ARGS__))
#define AM_RequestXferAsync15(ep, to, offset, h, data, n, ...) AMUDP_RequestXfer(ep, to, h, data, n, offset, 1, 15, AMX_INTS15(__VA_ARGS__))
#define AM_RequestXferAsync16(ep, to, offset, h, data, n, ...) AMUDP_RequestXfer(ep, to, h, data, n, offset, 1, 16, AMX_INTS16(__VA_ARGS__))

#define AM_GetXfer0(ep, to, source, h, offset, n) AMUDP_GetXfer(ep, to, source, h, offset, n, 0, 0)
#define AM_GetXfer1(ep, to, source, h, offset, n, ...) AMUDP_GetXfer(ep, to, source, h, offset, n, 0, 1, AMX_INTS1(__VA_ARGS__))
#define AM_GetXfer2(ep, to, source, h, offset, n, ...) AMUDP_GetXfer(ep, to, source, h, offset, n, 0, 2, AMX_INTS2(__VA_ARGS__))
#define AM_GetXfer3(ep, to, source, h, offset, n, ...) AMUDP_GetXfer(ep, to, source, h, offset, n, 0, 3, AMX_INTS3(__VA_ARGS__))
#define AM_GetXfer4(ep, to, source, h, offset, n, ...) AMUDP_GetXfer(ep, to, source, h, offset, n, 0, 4, AMX_INTS4(__VA_ARGS__))
#define AM_GetXfer5(ep, to, source, h, offset, n, ...) AMUDP_GetXfer(ep, to, source, h, offset, n, 0, 5, AMX_INTS5(__VA_ARGS__))
#define AM_GetXfer6(ep, to, source, h, offset, n, ...) AMUDP_GetXfer(ep, to, source, h, offset, n, 0, 6, AMX_INTS6(__VA_ARGS__))
#define AM_GetXfer7(ep, to, source, h, offset, n, ...) AMUDP_GetXfer(ep, to, source, h, offset, n, 0, 7, AMX_INTS7(__VA_ARGS__))
#define AM_GetXfer8(ep, to, source, h, offset, n, ...) AMUDP_GetXfer(ep, to, source, h, offset, n, 0, 8, AMX_INTS8(__VA_ARGS__))
#define AM_GetXfer9(ep, to, source, h, offset, n, ...) AMUDP_GetXfer(ep, to, source, h, offset, n, 0, 9, AMX_INTS9(__VA_ARGS__))
#define AM_GetXfer10(ep, to, source, h, offset, n, ...) AMUDP_GetXfer(ep, to, source, h, offset, n, 0, 10, AMX_INTS10(__VA_ARGS__))
#define AM_GetXfer11(ep, to, source, h, offset, n, ...) AMUDP_GetXfer(ep, to, source, h, offset, n, 0, 11, AMX_INTS11(__VA_ARGS__))
#define AM_GetXfer12(ep, to, source, h, offset, n, ...) AMUDP_GetXfer(ep, to, source, h, offset, n, 0, 12, AMX_INTS12(__VA_ARGS__))
#define AM_GetXfer13(ep, to, source, h, offset, n, ...) AMUDP_GetXfer(ep, to, source, h, offset, n, 0, 13, AMX_INTS13(__VA_ARGS__))
#define AM_GetXfer14(ep, to, source, h, offset, n, ...) AMUDP_GetXfer(ep, to, source, h, offset, n, 0, 14, AMX_INTS14(__VA_ARGS__))
#define AM_GetXfer15(ep, to, source, h, offset, n, ...) AMUDP_GetXfer(ep, to, source, h, offset, n, 0, 15, AMX_INTS15(__VA_ARGS__))
#define AM_GetXfer16(ep, to, source, h, offset, n, ...) AMUDP_GetXfer(ep, to, source, h, offset, n, 0, 16, AMX_INTS16(__VA_ARGS__))

#define AM_GetXferAsync0(ep, to, source, h, offset, n) AMUDP_GetXfer(ep, to, source, h, offset, n, 1, 0)
#define AM_GetXferAsync1(ep, to, source, h, offset, n, ...) AMUDP_GetXfer(ep, to, source, h, offset, n, 1, 1, AMX_INTS1(__VA_ARGS__))
#define AM_GetXferAsync2(ep, to, source, h, offset, n, ...) AMUDP_GetXfer(ep, to, source, h, offset, n, 1, 2, AMX_INTS2(__VA_ARGS__))
#define AM_GetXferAsync3(ep, to, source, h, offset, n, ...) AMUDP_GetXfer(ep, to, source, h, offset, n, 1, 3, AMX_INTS3(__VA_ARGS__))
#define AM_GetXferAsync4(ep, to, source, h, offset, n, ...) AMUDP_GetXfer(ep, to, source, h, offset, n, 1, 4, AMX_INTS4(__VA_ARGS__))
#define AM_GetXferAsync5(ep, to, source, h, offset, n, ...) AMUDP_GetXfer(ep, to, source, h, offset, n, 1, 5, AMX_INTS5(__VA_ARGS__))
#define AM_GetXferAsync6(ep, to, source, h, offset, n, ...) AMUDP_GetXfer(ep, to, source, h, offset, n, 1, 6, AMX_INTS6(__VA_ARGS__))
#define AM_GetXferAsync7(ep, to, source, h, offset, n, ...) AMUDP_GetXfer(ep, to, source, h, offset, n, 1, 7, AMX_INTS7(__VA_ARGS__))
#define AM_GetXferAsync8(ep, to, source, h, offset, n, ...) AMUDP_GetXfer(ep, to, source, h, offset, n, 1, 8, AMX_INTS8(__VA_ARGS__))
#define AM_GetXferAsync9(ep, to, source, h, offset, n, ...) AMUDP_GetXfer(ep, to, source, h, offset, n, 1, 9, AMX_INTS9(__VA_ARGS__))
#define AM_GetXferAsync10(ep, to, source, h, offset, n, ...) AMUDP_GetXfer(ep, to, source, h, offset, n, 1, 10, AMX_INTS10(__VA_ARGS__))
#define AM_GetXferAsync11(ep, to, source, h, offset, n, ...) AMUDP_GetXfer(ep, to, source, h, offset, n, 1, 11, AMX_INTS11(__VA_ARGS__))
#define AM_GetXferAsync12(ep, to, source, h, offset, n, ...) AMUDP_GetXfer(ep, to, source, h, offset, n, 1, 12, AMX_INTS12(__VA_ARGS__))
#define AM_GetXferAsync13(ep, to, source, h, offset, n, ...) AMUDP_GetXfer(ep, to, source, h, offset, n, 1, 13, AMX_INTS13(__VA_ARGS__))
#define AM_GetXferAsync14(ep, to, source, h, offset, n, ...) AMUDP_GetXfer(ep, to, source, h, offset, n, 1, 14, AMX_INTS14(__VA_ARGS__))
#define AM_GetXferAsync15(ep, to, source, h, offset, n, ...) AMUDP_GetXfer(ep, to, source, h, offset, n, 1, 15, AMX_INTS15(__VA_ARGS__))
#define AM_GetXferAsync16(ep, to, source, h, offset, n, ...) AMUDP_GetXfer(ep, to, source, h, offset, n, 1, 16, AMX_INTS16(__VA_ARGS__))

#define AM_Reply0(token, h) AMUDP_Reply(token, h, 0)
#define AM_Reply1(token, h, ...) AMUDP_Reply(token, h, 1, AMX_INTS1(__VA_ARGS__))
#define AM_Reply2(token, h, ...) AMUDP_Reply(token, h, 2, AMX_INTS2(__VA_ARGS__))
#define AM_Reply3(token, h, ...) AMUDP_Reply(token, h, 3, AMX_INTS3(__VA_ARGS__))
#define AM_Reply4(token, h, ...) AMUDP_Reply(token, h, 4, AMX_INTS4(__VA_ARGS__))
#define AM_Reply5(token, h, ...) AMUDP_Reply(token, h, 5, AMX_INTS5(__VA_ARGS__))
#define AM_Reply6(token, h, ...) AMUDP_Reply(token, h, 6, AMX_INTS6(__VA_ARGS__))
#define AM_Reply7(token, h, ...) AMUDP_Reply(token, h, 7, AMX_INTS7(__VA_ARGS__))
#define AM_Reply8(token, h, ...) AMUDP_Reply(token, h, 8, AMX_INTS8(__VA_ARGS__))
#define AM_Reply9(token, h, ...) AMUDP_Reply(token, h, 9, AMX_INTS9(__VA_ARGS__))
#define AM_Reply10(token, h, ...) AMUDP_Reply(token, h, 10, AMX_INTS10(__VA_ARGS__))
#define AM_Reply11(token, h, ...) AMUDP_Reply(token, h, 11, AMX_INTS11(__VA_ARGS__))
#define AM_Reply12(token, h, ...) AMUDP_Reply(token, h, 12, AMX_INTS12(__VA_ARGS__))
#define AM_Reply13(token, h, ...) AMUDP_Reply(token, h, 13, AMX_INTS13(__VA_ARGS__))
#define AM_Reply14(token, h, ...) AMUDP_Reply(token, h, 14, AMX_INTS14(__VA_ARGS__))
#define AM_Reply15(token, h, ...) AMUDP_Reply(token, h, 15, AMX_INTS15(__VA_ARGS__))
#define AM_Reply16(token, h, ...) AMUDP_Reply(token, h, 16, AMX_INTS16(__VA_ARGS__))

#define AM_ReplyI0(token, h, data, n) AMUDP_ReplyI(token, h, data, n, 0)
#define AM_ReplyI1(token, h, data, n, ...) AMUDP_ReplyI(token, h, data, n, 1, AMX_INTS1(__VA_ARGS__))
#define AM_ReplyI2(token, h, data, n, ...) AMUDP_ReplyI(token, h, data, n, 2, AMX_INTS2(__VA_ARGS__))
#define AM_ReplyI3(token, h, data, n, ...) AMUDP_ReplyI(token, h, data, n, 3, AMX_INTS3(__VA_ARGS__))
#define AM_ReplyI4(token, h, data, n, ...) AMUDP_ReplyI(token, h, data, n, 4, AMX_INTS4(__VA_ARGS__))
#define AM_ReplyI5(token, h, data, n, ...) AMUDP_ReplyI(token, h, data, n, 5, AMX_INTS5(__VA_ARGS__))
#define AM_ReplyI6(token, h, data, n, ...) AMUDP_ReplyI(token, h, data, n, 6, AMX_INTS6(__VA_ARGS__))
#define AM_ReplyI7(token, h, data, n, ...) AMUDP_ReplyI(token, h, data, n, 7, AMX_INTS7(__VA_ARGS__))
#define AM_ReplyI8(token, h, data, n, ...) AMUDP_ReplyI(token, h, data, n, 8, AMX_INTS8(__VA_ARGS__))
#define AM_ReplyI9(token, h, data, n, ...) AMUDP_ReplyI(token, h, data, n, 9, AMX_INTS9(__VA_ARGS__))
#define AM_ReplyI10(token, h, data, n, ...) AMUDP_ReplyI(token, h, data, n, 10, AMX_INTS10(__VA_ARGS__))
#define AM_ReplyI11(token, h, data, n, ...) AMUDP_ReplyI(token, h, data, n, 11, AMX_INTS11(__VA_ARGS__))
#define AM_ReplyI12(token, h, data, n, ...) AMUDP_ReplyI(token, h, data, n, 12, AMX_INTS12(__VA_ARGS__))
#define AM_ReplyI13(token, h, data, n, ...) AMUDP_ReplyI(token, h, data, n, 13, AMX_INTS13(__VA_ARGS__))
#define AM_ReplyI14(token, h, data, n, ...) AMUDP_ReplyI(token, h, data, n, 14, AMX_INTS14(__VA_ARGS__))
#define AM_ReplyI15(token, h, data, n, ...) AMUDP_ReplyI(token, h, data, n, 15, AMX_INTS15(__VA_ARGS__))
#define AM_ReplyI16(token, h, data, n, ...) AMUDP_ReplyI(token, h, data, n, 16, AMX_INTS16(__VA_ARGS__))

#define AM_ReplyXfer0(token, offset, h, data, n) AMUDP_ReplyXfer(token, h, data, n, offset, 0)
#define AM_ReplyXfer1(token, offset, h, data, n, ...) AMUDP_ReplyXfer(token, h, data, n, offset, 1, AMX_INTS1(__VA_ARGS__))
#define AM_ReplyXfer2(token, offset, h, data, n, ...) AMUDP_ReplyXfer(token, h, data, n, offset, 2, AMX_INTS2(__VA_ARGS__))
#define AM_ReplyXfer3(token, offset, h, data, n, ...) AMUDP_ReplyXfer(token, h, data, n, offset, 3, AMX_INTS3(__VA_ARGS__))
#define AM_ReplyXfer4(token, offset, h, data, n, ...) AMUDP_ReplyXfer(token, h, data, n, offset, 4, AMX_INTS4(__VA_ARGS__))
#define AM_ReplyXfer5(token, offset, h, data, n, ...) AMUDP_ReplyXfer(token, h, data, n, offset, 5, AMX_INTS5(__VA_ARGS__))
#define AM_ReplyXfer6(token, offset, h, data, n, ...) AMUDP_ReplyXfer(token, h, data, n, offset, 6, AMX_INTS6(__VA_ARGS__))
#define AM_ReplyXfer7(token, offset, h, data, n, ...) AMUDP_ReplyXfer(token, h, data, n, offset, 7, AMX_INTS7(__VA_ARGS__))
#define AM_ReplyXfer8(token, offset, h, data, n, ...) AMUDP_ReplyXfer(token, h, data, n, offset, 8, AMX_INTS8(__VA_ARGS__))
#define AM_ReplyXfer9(token, offset, h, data, n, ...) AMUDP_ReplyXfer(token, h, data, n, offset, 9, AMX_INTS9(__VA_ARGS__))
#define AM_ReplyXfer10(token, offset, h, data, n, ...) AMUDP_ReplyXfer(token, h, data, n, offset, 10, AMX_INTS10(__VA_ARGS__))
#define AM_ReplyXfer11(token, offset, h, data, n, ...) AMUDP_ReplyXfer(token, h, data, n, offset, 11, AMX_INTS11(__VA_ARGS__))
#define AM_ReplyXfer12(token, offset, h, data, n, ...) AMUDP_ReplyXfer(token, h, data, n, offset, 12, AMX_INTS12(__VA_ARGS__))
#define AM_ReplyXfer13(token, offset, h, data, n, ...) AMUDP_ReplyXfer(token, h, data, n, offset, 13, AMX_INTS13(__VA_ARGS__))
#define AM_ReplyXfer14(token, offset, h, data, n, ...) AMUDP_ReplyXfer(token, h, data, n, offset, 14, AMX_INTS14(__VA_ARGS__))
#define AM_ReplyXfer15(token, offset, h, data, n, ...) AMUDP_ReplyXfer(token, h, data, n, offset, 15, AMX_INTS15(__VA_ARGS__))
#define AM_ReplyXfer16(token, offset, h, data, n, ...) AMUDP_ReplyXfer(token, h, data, n, offset, 16, AMX_INTS16(__VA_ARGS__))

/* clang-format on */

/* ---- names that AM-2 libraries have in common */

#define AMX_SetTranslationTag AMUDP_SetTranslationTag
#define AMX_GetEndpointStatistics AMUDP_GetEndpointStatistics
#define AMX_ResetEndpointStatistics AMUDP_ResetEndpointStatistics
#define AMX_AggregateStatistics AMUDP_AggregateStatistics
#define AMX_DumpStatistics AMUDP_DumpStatistics
#define AMX_initial_stats AMUDP_initial_stats
#define AMX_GetSourceId AMUDP_GetSourceId
#define AMX_enEqual AMUDP_enEqual
#define amx_stats_t amudp_stats_t
#define amx_handler_fn_t amudp_handler_fn_t

#ifdef __cplusplus
}
#endif

#endif
