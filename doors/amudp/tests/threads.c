/* prog [NPROCS SPAWN] M|P THREADS ROUNDS: THREADS threads of each rank send, poll and move the segment at once, as a
 * threaded runtime does. M: an AM_SEQ bundle and the runtime's mutex around each call. P: an AM_PAR bundle without one.
 * Handlers take a lock that threads also take between calls. Long messages are placed while the segment moves: each
 * arrives or comes back, and none writes into the former segment. */
#include <amudp_spmd.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "check.h"

enum {
  kShort = 1,
  kMedium,
  kLong,
  kDone,
  kDoneData,
  kNobody = 77,
  kBytes = 9000,
  kThreadsMax = 8,
  kSlots = 64,
  kSegment = kSlots * kBytes
};

static eb_t bundle, parallel;
static ep_t ep;
static int ranks, threads, rounds, is_parallel, finished, handled[3], returned_all, moved_all;
static pthread_mutex_t calls = PTHREAD_MUTEX_INITIALIZER, shared = PTHREAD_MUTEX_INITIALIZER;
static unsigned char segments[2][kSegment], copy[kSegment];
static int answer[kThreadsMax]; /* 1: done, 2: came back; under `shared` */

static void enter(void) {
  if (!is_parallel) pthread_mutex_lock(&calls);
}
static void leave(void) {
  if (!is_parallel) pthread_mutex_unlock(&calls);
}

static void check_bytes(const unsigned char* data, size_t length, int salt) {
  size_t i;
  for (i = 0; i < length; i += 61) CHECK(data[i] == (unsigned char)(i * 7 + (size_t)salt));
}
static int is_in_a_segment(const unsigned char* data, size_t length) {
  int i;
  for (i = 0; i < 2; ++i)
    if (data >= segments[i] && data + length <= segments[i] + kSegment) return 1;
  return 0;
}
static void count(int kind) {
  pthread_mutex_lock(&shared);
  ++handled[kind];
  pthread_mutex_unlock(&shared);
}
static void set_answer(int thread, int what) {
  pthread_mutex_lock(&shared);
  CHECK(answer[thread] == 0);
  answer[thread] = what;
  pthread_mutex_unlock(&shared);
}
static int take_answer(int thread) {
  int what;
  pthread_mutex_lock(&shared);
  what = answer[thread];
  if (what != 0) answer[thread] = 0;
  pthread_mutex_unlock(&shared);
  return what;
}

static void on_short(void* token, int thread, int a, int b) {
  CHECK(b == a + 1);
  count(0);
  OK(AM_Reply1(token, kDone, thread));
}
static void on_medium(void* token, unsigned char* data, size_t length, int thread, int salt) {
  check_bytes(data, length, salt);
  count(1);
  OK(AM_ReplyI2(token, kDoneData, data, length, thread, salt));
}
static void on_long(void* token, unsigned char* data, size_t length, int thread, int salt) {
  CHECK(is_in_a_segment(data, length));
  check_bytes(data, length, salt);
  count(2);
  OK(AM_Reply1(token, kDone, thread));
}
static void on_done(void* token, int thread) {
  (void)token;
  set_answer(thread, 1);
}
static void on_done_data(void* token, unsigned char* data, size_t length, int thread, int salt) {
  (void)token;
  check_bytes(data, length, salt);
  set_answer(thread, 1);
}
static void on_returned(int status, op_t op, void* block) {
  const amudp_returned_t* what = block;
  if (what->handler == kNobody) {
    CHECK(status == EBADHANDLER && op == AM_REQUEST_M);
  } else {
    CHECK((status == EBADSEGOFF || status == EBADLENGTH) && op == AM_REQUEST_XFER_M);
    pthread_mutex_lock(&shared);
    ++returned_all;
    pthread_mutex_unlock(&shared);
  }
  set_answer(what->arguments[0], 2);
}

static int wait_for_answer(int thread) {
  for (;;) {
    const int what = take_answer(thread);
    if (what != 0) return what;
    enter();
    OK(AM_Poll(is_parallel ? parallel : bundle));
    leave();
    sched_yield();
  }
}

/* Only the first thread moves it. What a message had placed before stays as it is. */
static void move_segment(int* current) {
  enter();
  OK(AM_SetSeg(ep, segments[!*current], kSegment));
  leave();
  memcpy(copy, segments[*current], kSegment);
  *current = !*current;
  ++moved_all;
}

static void* work(void* argument) {
  const int thread = *(const int*)argument, slot = check_rank * threads + thread;
  unsigned char data[kBytes];
  int round, current = 0;
  for (round = 0; round < rounds; ++round) {
    const int to = (check_rank + 1 + round) % ranks, salt = round + 31 * slot, kind = round % 3;
    const size_t length = (size_t)(kind == 2 ? kBytes : 1 + round * 97 % kBytes);
    size_t i;
    for (i = 0; i < length; ++i) data[i] = (unsigned char)(i * 7 + (size_t)salt);
    do {
      enter();
      if (kind == 0) OK(AM_Request3(ep, to, kShort, thread, round, round + 1));
      if (kind == 1) OK(AM_RequestI2(ep, to, kMedium, data, length, thread, salt));
      if (kind == 2) OK(AM_RequestXfer2(ep, to, (size_t)slot * kBytes, kLong, data, length, thread, salt));
      leave();
    } while (wait_for_answer(thread) != 1);
    if (thread == 0 && round % 4 == 3) {
      if (moved_all != 0) CHECK(memcmp(copy, segments[!current], kSegment) == 0);
      move_segment(&current);
    }
    pthread_mutex_lock(&shared); /* also taken by handlers, which other threads run meanwhile */
    sched_yield();
    pthread_mutex_unlock(&shared);
  }
  pthread_mutex_lock(&shared);
  ++finished;
  pthread_mutex_unlock(&shared);
  return NULL;
}

int main(int argc, char** argv) {
  pthread_t others[kThreadsMax];
  int i, numbers[kThreadsMax], all[64 * 4], sums[4], expected = 0;
  amx_stats_t stats;
  OK(AMX_SPMDStartup(&argc, &argv, 0, NULL, &bundle, &ep));
  check_rank = AMX_SPMDMyProc();
  ranks = AMX_SPMDNumProcs();
  CHECK(argc == 4);
  is_parallel = argv[1][0] == 'P';
  threads = atoi(argv[2]);
  rounds = atoi(argv[3]);
  CHECK(threads <= kThreadsMax && ranks * threads <= kSlots);
  OK(AM_AllocateBundle(AM_PAR, &parallel));
  /* Polls without a handler; a message for a missing one comes back. */
  for (i = 0; i < 10; ++i) OK(AM_Poll(bundle));
  OK(AM_SetHandler(ep, 0, on_returned));
  OK(AM_Request1(ep, (check_rank + 1) % ranks, kNobody, 0));
  while (take_answer(0) != 2) OK(AM_Poll(bundle));
  OK(AMX_SPMDBarrier());
  OK(AM_SetHandler(ep, kShort, on_short));
  OK(AM_SetHandler(ep, kMedium, on_medium));
  OK(AM_SetHandler(ep, kLong, on_long));
  OK(AM_SetHandler(ep, kDone, on_done));
  OK(AM_SetHandler(ep, kDoneData, on_done_data));
  OK(AM_SetSeg(ep, segments[0], kSegment));
  OK(AMX_SPMDBarrier());
  if (is_parallel) OK(AM_MoveEndpoint(ep, bundle, parallel));
  for (i = 0; i < threads; ++i) numbers[i] = i;
  for (i = 1; i < threads; ++i) CHECK(pthread_create(&others[i], NULL, work, &numbers[i]) == 0);
  work(&numbers[0]);
  for (i = 1; i < threads; ++i) pthread_join(others[i], NULL);
  if (is_parallel) OK(AM_MoveEndpoint(ep, parallel, bundle));
  OK(AMX_SPMDBarrier()); /* serves the other ranks meanwhile */
  CHECK(finished == threads && (rounds < 4 || moved_all != 0));
  memcpy(sums, handled, sizeof handled);
  sums[3] = returned_all;
  OK(AMX_SPMDAllGather(sums, all, sizeof sums));
  for (i = 0; i < ranks; ++i) expected += all[4 * i] + all[4 * i + 1] + all[4 * i + 2];
  CHECK(expected == ranks * threads * rounds);
  OK(AMX_GetEndpointStatistics(ep, &stats));
  for (i = 0; i < 3; ++i) CHECK(stats.RequestsReceived[i] == (uint64_t)handled[i]);
  CHECK(stats.RequestsSent[0] + stats.RequestsSent[1] + stats.RequestsSent[2] ==
        (uint64_t)(threads * rounds + 1 + returned_all));
  printf("rank %d of %d: done\n", check_rank, ranks);
  fflush(stdout);
  OK(AMX_SPMDBarrier());
  AMX_SPMDExit(0);
  return 9;
}
