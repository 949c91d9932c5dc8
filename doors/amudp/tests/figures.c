/* prog [NPROCS SPAWN] WHAT BYTES COUNT P|B|Y [THREADS]: measures an AM-2 library. It uses AM-2 alone, so it also runs
 * with others, for a comparison in turns. Each rank but the first prints a line.
 *
 *   short, medium, long  ranks 1.. send requests of BYTES to rank 0, one at a time, and wait for the short reply
 *   ping, bulk           the same with short and long requests, as many at a time as there are credits
 *   lock                 all ranks acquire a lock in rank 0, and ask again while it is taken
 *   next                 each rank sends to the next one, and waits for its reply, all at once
 *   all                  each rank sends to all others, and waits for all replies
 *   barrier              AMX_SPMDBarrier
 *
 * P polls, Y polls and yields the processor between two polls, B blocks in AM_WaitSema. THREADS threads of each rank do
 * this at once. They share the bundle with a mutex, as runtimes do; so they cannot block. */
#include <amudp_spmd.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "check.h"

enum { kAsk = 1, kAskData, kAnswer, kLock, kLocked, kUnlock, kLongest = 65000, kThreadsMax = 16, kParts = 20 };

static eb_t bundle;
static ep_t ep;
static int ranks, threads, bytes, count;
static char how;
static const char* what;
static unsigned char segment[kLongest], out[kLongest];
static int answers[kThreadsMax], is_mine[kThreadsMax], owner = -1;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void on_ask(void* token, int thread) {
  OK(AM_Reply1(token, kAnswer, thread));
}
static void on_ask_data(void* token, void* data, size_t length, int thread) {
  (void)data;
  CHECK(length == (size_t)bytes);
  OK(AM_Reply1(token, kAnswer, thread));
}
static void on_answer(void* token, int thread) {
  (void)token;
  ++answers[thread];
}
static void on_lock(void* token, int thread) {
  int source = -1, is_free;
  OK(AMX_GetSourceId(token, &source));
  is_free = owner < 0;
  if (is_free) owner = source * kThreadsMax + thread;
  OK(AM_Reply2(token, kLocked, thread, is_free));
}
static void on_locked(void* token, int thread, int is_ours) {
  (void)token;
  is_mine[thread] = is_ours;
  ++answers[thread];
}
static void on_unlock(void* token, int thread) {
  int source = -1;
  OK(AMX_GetSourceId(token, &source));
  CHECK(owner == source * kThreadsMax + thread);
  owner = -1;
  OK(AM_Reply1(token, kAnswer, thread));
}

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* The library is entered with the mutex held, which is released now and then for the other threads. */
static void wait_until(int thread, int wanted) {
  while (answers[thread] < wanted) {
    OK(how == 'B' ? AM_WaitSema(bundle) : AM_Poll(bundle));
    if (answers[thread] >= wanted) return;
    if (threads > 1) pthread_mutex_unlock(&mutex);
    if (how == 'Y') sched_yield();
    if (threads > 1) pthread_mutex_lock(&mutex);
  }
}

static int send_one(int to, int thread) {
  const int is_long = !strcmp(what, "long") || !strcmp(what, "bulk");
  if (is_long) return AM_RequestXfer1(ep, to, 0, kAskData, out, bytes, thread);
  if (!strcmp(what, "medium")) return AM_RequestI1(ep, to, kAskData, out, bytes, thread);
  return AM_Request1(ep, to, kAsk, thread);
}

/* A request to the own rank may be answered before the call returns. */
static void ask_first_rank(int thread, handler_t what_for) {
  const int before = answers[thread];
  OK(AM_Request1(ep, 0, what_for, thread));
  wait_until(thread, before + 1);
}

static void do_one(int thread, int rank) {
  int i;
  if (!strcmp(what, "lock")) {
    do ask_first_rank(thread, kLock);
    while (!is_mine[thread]);
    ask_first_rank(thread, kUnlock);
  } else if (!strcmp(what, "all")) {
    const int before = answers[thread];
    for (i = 1; i < ranks; ++i) OK(send_one((rank + i) % ranks, thread));
    wait_until(thread, before + ranks - 1);
  } else {
    const int before = answers[thread];
    OK(send_one(!strcmp(what, "next") ? (rank + 1) % ranks : 0, thread));
    wait_until(thread, before + 1);
  }
}

static int by_value(const void* a, const void* b) {
  const double one = *(const double*)a, other = *(const double*)b;
  return one < other ? -1 : one > other;
}

struct Work {
  int thread;
  double parts[kParts];
};
static void* work(void* argument) {
  struct Work* const its = argument;
  const int is_piped = !strcmp(what, "ping") || !strcmp(what, "bulk");
  int part, i;
  pthread_mutex_lock(&mutex);
  for (part = 0; part < kParts; ++part) {
    const int each = (count + kParts - 1) / kParts, before = answers[its->thread];
    const double begun = now_us();
    for (i = 0; i < each; ++i) {
      if (!strcmp(what, "barrier")) {
        OK(AMX_SPMDBarrier());
      } else if (is_piped) {
        OK(send_one(0, its->thread));
      } else {
        do_one(its->thread, check_rank);
      }
    }
    if (is_piped) wait_until(its->thread, before + each);
    its->parts[part] = (now_us() - begun) / each;
  }
  pthread_mutex_unlock(&mutex);
  return NULL;
}

int main(int argc, char** argv) {
  struct Work works[kThreadsMax];
  pthread_t others[kThreadsMax];
  int i, is_server;
  double mean = 0; /* counts the pauses, which the median of the parts hides */
  OK(AMX_SPMDStartup(&argc, &argv, 0, NULL, &bundle, &ep));
  check_rank = AMX_SPMDMyProc();
  ranks = AMX_SPMDNumProcs();
  CHECK(argc == 5 || argc == 6);
  what = argv[1];
  bytes = atoi(argv[2]);
  count = atoi(argv[3]);
  how = argv[4][0];
  threads = argc == 6 ? atoi(argv[5]) : 1;
  CHECK(bytes <= kLongest && threads >= 1 && threads <= kThreadsMax && (threads == 1 || how != 'B'));
  OK(AM_SetHandler(ep, kAsk, on_ask));
  OK(AM_SetHandler(ep, kAskData, on_ask_data));
  OK(AM_SetHandler(ep, kAnswer, on_answer));
  OK(AM_SetHandler(ep, kLock, on_lock));
  OK(AM_SetHandler(ep, kLocked, on_locked));
  OK(AM_SetHandler(ep, kUnlock, on_unlock));
  OK(AM_SetSeg(ep, segment, sizeof segment));
  OK(AM_SetEventMask(bundle, AM_NOTEMPTY));
  OK(AMX_SPMDBarrier());
  is_server =
      check_rank == 0 && strcmp(what, "barrier") && strcmp(what, "lock") && strcmp(what, "next") && strcmp(what, "all");
  if (!is_server) {
    for (i = 0; i < threads; ++i) works[i].thread = i;
    for (i = 1; i < threads; ++i) CHECK(pthread_create(&others[i], NULL, work, &works[i]) == 0);
    work(&works[0]);
    for (i = 1; i < threads; ++i) pthread_join(others[i], NULL);
    for (i = 0; i < kParts; ++i) mean += works[0].parts[i] / kParts;
    qsort(works[0].parts, kParts, sizeof(double), by_value);
    printf("%s %d B, rank %d of %d, %d threads, %c: %.2f us, best %.2f, mean %.2f\n", what, bytes, check_rank, ranks,
           threads, how, works[0].parts[kParts / 2], works[0].parts[0], mean);
  } else {
    for (;;) { /* until it has had all requests */
      amx_stats_t stats;
      OK(AMX_GetEndpointStatistics(ep, &stats));
      if (stats.RequestsReceived[0] + stats.RequestsReceived[1] + stats.RequestsReceived[2] >=
          (uint64_t)((count + kParts - 1) / kParts * kParts) * (uint64_t)(ranks - 1) * (uint64_t)threads)
        break;
      OK(how == 'B' ? AM_WaitSema(bundle) : AM_Poll(bundle));
      if (how == 'Y') sched_yield();
    }
  }
  fflush(stdout);
  OK(AMX_SPMDBarrier());
  AMX_SPMDExit(0);
  return 9;
}
