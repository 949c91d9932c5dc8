/* prog [NPROCS SPAWN] RANK HOW: that rank ends by HOW (kill, exit, leave), while the others compute without a call.
 * With "stuck" it is killed, and the others cannot end by themselves. */
#include <amudp_spmd.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

static const char* how;

static void on_exit_callback(int code) {
  if (!strcmp(how, "stuck")) sleep(100);
  fprintf(stderr, "callback of rank %d: %d\n", check_rank, code);
}

int main(int argc, char** argv) {
  eb_t bundle;
  ep_t ep;
  OK(AMX_SPMDStartup(&argc, &argv, 0, NULL, &bundle, &ep));
  check_rank = AMX_SPMDMyProc();
  CHECK(argc == 3);
  how = argv[2];
  OK(AMX_SPMDSetExitCallback(on_exit_callback));
  OK(AMX_SPMDBarrier());
  if (check_rank == atoi(argv[1])) {
    if (!strcmp(how, "kill") || !strcmp(how, "stuck")) kill(getpid(), SIGKILL);
    if (!strcmp(how, "exit")) AMX_SPMDExit(5);
    return 3;
  }
  sleep(100);
  return 4;
}
