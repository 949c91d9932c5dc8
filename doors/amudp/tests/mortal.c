/* prog [NPROCS SPAWN] RANK HOW: that rank dies by HOW (kill, exit, leave), the others compute without a call. */
#include <amudp_spmd.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

static void on_exit_callback(int code) {
  fprintf(stderr, "callback of rank %d: %d\n", check_rank, code);
}

int main(int argc, char** argv) {
  eb_t bundle;
  ep_t ep;
  OK(AMX_SPMDStartup(&argc, &argv, 0, NULL, &bundle, &ep));
  check_rank = AMX_SPMDMyProc();
  CHECK(argc == 3);
  OK(AMX_SPMDSetExitCallback(on_exit_callback));
  OK(AMX_SPMDBarrier());
  if (check_rank == atoi(argv[1])) {
    if (!strcmp(argv[2], "kill")) kill(getpid(), SIGKILL);
    if (!strcmp(argv[2], "exit")) AMX_SPMDExit(5);
    return 3;
  }
  sleep(100);
  return 4;
}
