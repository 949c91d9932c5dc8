/* prog [NPROCS SPAWN] RANK HOW [MEANWHILE]: that rank ends by HOW, while the others compute without a call, or are in a
 * call: MEANWHILE is wait, poll, barrier or request. HOW:
 *   exit                    AMX_SPMDExit(5)
 *   return, _exit           with code 3, without AMX_SPMDExit
 *   zero                    with code 0, without AMX_SPMDExit
 *   fatal                   AMX_FatalErr
 *   kill, abort, segv, term by that signal
 *   stuck                   killed, and the others cannot end by themselves */
#include <amudp_spmd.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

static const char *how, *meanwhile;

static void on_exit_callback(int code) {
  if (!strcmp(how, "stuck")) sleep(100);
  fprintf(stderr, "callback of rank %d: %d\n", check_rank, code);
}
static void on_request(void* token) {
  OK(AM_Reply0(token, 2));
}
static void on_reply(void* token) {
  (void)token;
}

int main(int argc, char** argv) {
  eb_t bundle;
  ep_t ep;
  int end;
  OK(AMX_SPMDStartup(&argc, &argv, 0, NULL, &bundle, &ep));
  check_rank = AMX_SPMDMyProc();
  CHECK(argc == 3 || argc == 4);
  how = argv[2];
  meanwhile = argc == 4 ? argv[3] : "";
  end = atoi(argv[1]);
  OK(AMX_SPMDSetExitCallback(on_exit_callback));
  OK(AM_SetHandler(ep, 1, on_request));
  OK(AM_SetHandler(ep, 2, on_reply));
  OK(AMX_SPMDBarrier());
  if (check_rank == end) {
    if (!strcmp(how, "kill") || !strcmp(how, "stuck")) kill(getpid(), SIGKILL);
    if (!strcmp(how, "exit")) AMX_SPMDExit(5);
    if (!strcmp(how, "abort")) abort();
    if (!strcmp(how, "segv")) raise(SIGSEGV);
    if (!strcmp(how, "term")) raise(SIGTERM);
    if (!strcmp(how, "fatal")) AMX_FatalErr("rank %d ends", check_rank);
    if (!strcmp(how, "_exit")) _exit(3);
    return !strcmp(how, "zero") ? 0 : 3;
  }
  if (!strcmp(meanwhile, "wait")) OK(AM_WaitSema(bundle));
  if (!strcmp(meanwhile, "barrier")) OK(AMX_SPMDBarrier());
  while (!strcmp(meanwhile, "poll")) OK(AM_Poll(bundle));
  while (!strcmp(meanwhile, "request")) OK(AM_Request0(ep, end, 1));
  sleep(100);
  return 4;
}
