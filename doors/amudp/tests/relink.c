/* prog NPROCS SPAWN: uses none of our headers. Its declarations are AMUDP's ABI as in objects compiled long ago, and
 * must not change. Linked with the archive. Each rank sends one message of each kind to the next. */
#include <netinet/in.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "check.h"

#define AM_OK 0

typedef struct old_endpoint* old_ep;
typedef struct old_bundle* old_eb;
extern int AMUDP_SPMDStartup_AMUDP_NDEBUG(int*, char***, int, int, int (*)(int, int, char**), uint64_t*, old_eb*,
                                          old_ep*);
extern int AMUDP_SPMDExit(int), AMUDP_SPMDBarrier(void), AMUDP_SPMDAllGather(void*, void*, size_t);
extern int AMUDP_SPMDMyProc(void), AMUDP_SPMDNumProcs(void);
extern int _AM_SetHandler(old_ep, unsigned char, void (*)(void)), AM_SetSeg(old_ep, void*, uintptr_t);
extern int AM_Poll(old_eb), AM_GetTranslationName(old_ep, int, struct sockaddr_in*);
extern int AMUDP_GetSourceId(void*, int*), AMUDP_enEqual(struct sockaddr_in, struct sockaddr_in);
extern int AMUDP_Request(old_ep, int, unsigned char, int, ...);
extern int AMUDP_RequestIVA(old_ep, int, unsigned char, void*, size_t, int, va_list);
extern int AMUDP_RequestXfer(old_ep, int, unsigned char, void*, size_t, uintptr_t, int, int, ...);
extern int AMUDP_Reply(void*, unsigned char, int, ...);
extern int AMUDP_ReplyXfer(void*, unsigned char, void*, size_t, uintptr_t, int, ...);
extern int AMUDP_PoliteSync, AMX_VerboseErrors;
extern void (*AMUDP_SPMDkillmyprocess)(int);

static int before_us, replies;
static char segment[200];

static void on_short(void* token, int a, int b) {
  int source = -1;
  OK(AMUDP_GetSourceId(token, &source));
  CHECK(source == before_us && a == -1 && b == 1 << 30);
  OK(AMUDP_Reply(token, 4, 1, 11));
}
static void on_medium(void* token, void* data, size_t length, int a) {
  CHECK(length == 6 && !((char*)data)[5] && ((char*)data)[0] == 'm' && a == 5);
  OK(AMUDP_Reply(token, 4, 1, 22));
}
static void on_long(void* token, void* data, size_t length) {
  CHECK(data == segment + 50 && length == 5 && segment[50] == 'l');
  OK(AMUDP_ReplyXfer(token, 5, "back", 5, 100, 1, 33));
}
static void on_reply(void* token, int a) {
  (void)token;
  replies += a;
}
static void on_long_reply(void* token, void* data, size_t length, int a) {
  (void)token;
  CHECK(data == segment + 100 && length == 5 && segment[100] == 'b');
  replies += a;
}
static int request_medium(old_ep ep, int to, char* data, size_t length, int count, ...) {
  va_list arguments;
  int code;
  va_start(arguments, count);
  code = AMUDP_RequestIVA(ep, to, 2, data, length, count, arguments);
  va_end(arguments);
  return code;
}

int main(int argc, char** argv) {
  old_eb bundle;
  old_ep ep;
  uint64_t job;
  struct sockaddr_in own, all[16];
  int next, ranks;
  OK(AMUDP_SPMDStartup_AMUDP_NDEBUG(&argc, &argv, 0, 0, NULL, &job, &bundle, &ep));
  check_rank = AMUDP_SPMDMyProc();
  ranks = AMUDP_SPMDNumProcs();
  CHECK(ranks <= 16 && AMUDP_SPMDkillmyprocess != NULL && AMUDP_PoliteSync == 0 && AMX_VerboseErrors == 0);
  next = (check_rank + 1) % ranks;
  before_us = (check_rank + ranks - 1) % ranks;
  OK(AM_GetTranslationName(ep, check_rank, &own));
  OK(AMUDP_SPMDAllGather(&own, all, sizeof own));
  CHECK(AMUDP_enEqual(own, all[check_rank]) && own.sin_addr.s_addr == htonl(INADDR_LOOPBACK));
  OK(_AM_SetHandler(ep, 1, (void (*)(void))on_short));
  OK(_AM_SetHandler(ep, 2, (void (*)(void))on_medium));
  OK(_AM_SetHandler(ep, 3, (void (*)(void))on_long));
  OK(_AM_SetHandler(ep, 4, (void (*)(void))on_reply));
  OK(_AM_SetHandler(ep, 255, (void (*)(void))on_reply));
  OK(_AM_SetHandler(ep, 5, (void (*)(void))on_long_reply));
  OK(AM_SetSeg(ep, segment, sizeof segment));
  OK(AMUDP_SPMDBarrier());
  OK(AMUDP_Request(ep, next, 1, 2, -1, 1 << 30));
  OK(request_medium(ep, next, "mediu", 6, 1, 5));
  OK(AMUDP_RequestXfer(ep, next, 3, "long", 5, 50, 0, 0));
  while (replies < 66) OK(AM_Poll(bundle));
  OK(AMUDP_SPMDBarrier());
  printf("rank %d of %d: done\n", check_rank, ranks);
  fflush(stdout);
  OK(AMUDP_SPMDBarrier());
  AMUDP_SPMDExit(0);
  return 9;
}
