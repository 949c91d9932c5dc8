/* prog [NPROCS SPAWN] ROUNDS P|B: every rank sends messages of all kinds to every rank, including itself, and
 * counts the replies. P polls, B blocks. Built with AMMPI it takes no console arguments. */
#ifdef AMMPI
#include <ammpi_spmd.h>
#else
#include <amudp_spmd.h>
#endif
#include <sched.h>
#include <string.h>

#include "check.h"

enum { kShort = 1, kMedium, kLong, kShortBack, kMediumBack, kLongBack, kGot, kLongest = 20000 };

static eb_t bundle;
static ep_t ep;
static int ranks, is_blocking, back, seen_from[64];
static unsigned char segment[8 * kLongest], out[kLongest];
static en_t names[64];

static void count_source(void* token) {
  int source = -1;
  en_t name;
  OK(AMX_GetSourceId(token, &source));
  CHECK(source >= 0 && source < ranks);
  OK(AM_GetSourceEndpoint(token, &name));
  CHECK(AMX_enEqual(name, names[source]));
  ++seen_from[source];
}
static void check_bytes(const unsigned char* data, size_t length, int salt) {
  size_t i;
  for (i = 0; i < length; i += 97) CHECK(data[i] == (unsigned char)(i + salt));
}
static void on_short(void* token, int a, int b, int c, int d, int e, int f, int g, int h, int i, int j, int k, int l,
                     int m, int n, int o, int p) {
  CHECK(a == 1 && b == -2 && c == 3 && d == 4 && e == 5 && f == 6 && g == 7 && h == 8 && i == 9 && j == 10 && k == 11 &&
        l == 12 && m == 13 && n == 14 && o == 15 && p == 16);
  count_source(token);
  OK(AM_Reply2(token, kShortBack, a, b));
}
static void on_medium(void* token, void* data, size_t length, int salt) {
  CHECK((uintptr_t)data % 8 == 0);
  check_bytes(data, length, salt);
  count_source(token);
  OK(AM_ReplyI1(token, kMediumBack, data, length, salt));
}
static void on_long(void* token, void* data, size_t length, int salt) {
  const size_t offset = (size_t)((unsigned char*)data - segment);
  check_bytes(data, length, salt);
  count_source(token);
  OK(AM_ReplyXfer1(token, offset, kLongBack, data, length, salt));
}
static void on_short_back(void* token, int a, int b) {
  (void)token;
  CHECK(a == 1 && b == -2);
  ++back;
}
static void on_data_back(void* token, void* data, size_t length, int salt) {
  (void)token;
  check_bytes(data, length, salt);
  ++back;
}
static void on_returned(int status, op_t op, void* block) {
  (void)block;
  fprintf(stderr, "rank %d: returned: status %d op %d\n", check_rank, status, op);
  _Exit(8);
}

static void wait_for(int count) {
  while (back < count) {
    OK(is_blocking ? AM_WaitSema(bundle) : AM_Poll(bundle));
    if (ranks > 4) sched_yield(); /* more ranks than a small machine has processors */
  }
}

int main(int argc, char** argv) {
  static const size_t sizes[] = {0, 8, 700, 900, 5000, kLongest};
  uint64_t job = 0, jobs[64];
  int round, to, size, i, rounds, sent = 0, numbers[64];
  en_t own;
  const char* word;

  OK(AMX_SPMDStartup(&argc, &argv, 16, &job, &bundle, &ep));
  check_rank = AMX_SPMDMyProc();
  ranks = AMX_SPMDNumProcs();
  CHECK(argc == 3 && ranks <= 64);
  rounds = atoi(argv[1]);
  is_blocking = argv[2][0] == 'B';
  word = AMX_SPMDgetenvMaster("KINDS_WORD");
  CHECK(word == NULL || !strcmp(word, "a word of the console"));
  CHECK(AMX_SPMDgetenvMaster("KINDS_WOR") == NULL);

  OK(AM_SetHandler(ep, 0, on_returned));
  OK(AM_SetHandler(ep, kShort, on_short));
  OK(AM_SetHandler(ep, kMedium, on_medium));
  OK(AM_SetHandler(ep, kLong, on_long));
  OK(AM_SetHandler(ep, kShortBack, on_short_back));
  OK(AM_SetHandler(ep, kMediumBack, on_data_back));
  OK(AM_SetHandler(ep, kLongBack, on_data_back));
  OK(AM_SetHandler(ep, kGot, on_data_back));
  OK(AM_SetSeg(ep, segment, sizeof segment));
  OK(AMX_SPMDBarrier());
  OK(AM_GetTranslationName(ep, check_rank, &own));
  OK(AMX_SPMDAllGather(&own, names, sizeof own));
  OK(AMX_SPMDAllGather(&check_rank, numbers, sizeof check_rank));
  OK(AMX_SPMDAllGather(&job, jobs, sizeof job));
  for (i = 0; i < ranks; ++i) CHECK(numbers[i] == i && jobs[i] == job);

  for (round = 0; round < rounds; ++round) {
    for (to = 0; to < ranks; ++to) {
      OK(AM_Request16(ep, to, kShort, 1, -2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16));
      ++sent;
      for (size = 0; size < 6; ++size) {
        const int salt = round + size;
        for (i = 0; i < kLongest; ++i) out[i] = (unsigned char)(i + salt);
        OK(AM_RequestI1(ep, to, kMedium, out, sizes[size], salt));
        /* Each sender has its own place at each receiver, for one long message at a time. */
        wait_for(sent);
        OK(AM_RequestXfer1(ep, to, (size_t)(check_rank % 8) * kLongest, kLong, out, sizes[size], salt));
        sent += 2;
        wait_for(sent);
      }
    }
  }
  wait_for(sent);
  OK(AMX_SPMDBarrier());
  for (i = 0; i < ranks; ++i) CHECK(seen_from[i] == rounds * 13);
  /* The data that others placed last is still there: fetch the start of our own place from each. */
  for (to = 0; to < ranks && ranks <= 7; ++to) {
    OK(AM_GetXfer1(ep, to, (size_t)(check_rank % 8) * kLongest, kGot, 7 * kLongest, 3000, rounds - 1 + 5));
    ++sent;
    wait_for(sent);
  }
  OK(AMX_SPMDBarrier());
  printf("rank %d of %d: done\n", check_rank, ranks);
  OK(AMX_SPMDBarrier());
  fflush(stdout);
  AMX_SPMDExit(0);
  return 9;
}
