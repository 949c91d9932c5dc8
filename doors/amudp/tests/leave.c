/* prog [NPROCS SPAWN] RANK COUNT P|B: every rank sends messages of all kinds to all others, endlessly. RANK
 * leaves in an orderly way after COUNT rounds, then all others do, with messages in flight. No handler 0: a message
 * that came back would end the process with an error. */
#include <amudp_spmd.h>

#include "check.h"

enum { kEcho = 1, kBack, kBytes = 20000 };

static unsigned char segment[2 * kBytes], out[kBytes];

static void on_echo(void* token, void* data, size_t length, int a) {
  OK(length == kBytes ? AM_ReplyXfer1(token, 0, kBack, data, length, a) : AM_ReplyI1(token, kBack, data, length, a));
}
static void on_back(void* token, void* data, size_t length, int a) {
  (void)token, (void)data, (void)length, (void)a;
}

int main(int argc, char** argv) {
  eb_t bundle;
  ep_t ep;
  int round, to, ranks, count;
  OK(AMX_SPMDStartup(&argc, &argv, 0, NULL, &bundle, &ep));
  check_rank = AMX_SPMDMyProc();
  ranks = AMX_SPMDNumProcs();
  CHECK(argc == 4);
  count = check_rank == atoi(argv[1]) ? atoi(argv[2]) : 1 << 30;
  OK(AM_SetHandler(ep, kEcho, on_echo));
  OK(AM_SetHandler(ep, kBack, on_back));
  OK(AM_SetSeg(ep, segment, sizeof segment));
  OK(AMX_SPMDBarrier());
  for (round = 0; round < count; ++round) {
    for (to = 0; to < ranks; ++to) {
      if (to == check_rank) continue;
      OK(AM_RequestI1(ep, to, kEcho, out, 8, round));
      OK(AM_RequestXfer1(ep, to, kBytes, kEcho, out, kBytes, round));
    }
    OK(argv[3][0] == 'B' ? AM_WaitSema(bundle) : AM_Poll(bundle));
  }
  AMX_SPMDExit(0);
  return 9;
}
