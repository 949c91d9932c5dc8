/* prog NPROCS SPAWN: refused messages come back with their code, and 1000 good ones follow on the same pair.
 */
#include <amudp_spmd.h>

#include "check.h"

static int status_seen, op_seen, returned, replies;
static char segment[1000];

static void on_returned(int status, op_t op, void* block) {
  (void)block;
  status_seen = status;
  op_seen = op;
  ++returned;
}
static void on_request(void* token) {
  OK(AM_Reply0(token, 2));
}
static void on_reply(void* token) {
  (void)token;
  ++replies;
}
static void on_data(void* token, void* data, size_t length) {
  (void)token, (void)data, (void)length;
}
static void on_reply_badly(void* token) {
  OK(AM_Reply0(token, 201));
}

static eb_t bundle;
static ep_t ep;

static void expect(int status, op_t op) {
  const int before = replies;
  int i;
  while (returned == 0) OK(AM_Poll(bundle));
  CHECK(returned == 1 && status_seen == status && op_seen == op);
  returned = 0;
  for (i = 0; i < 1000; ++i) OK(AM_Request0(ep, 1, 1));
  while (replies < before + 1000) OK(AM_Poll(bundle));
}

int main(int argc, char** argv) {
  tag_t tag;
  char data[100] = {0};
  OK(AMX_SPMDStartup(&argc, &argv, 4, NULL, &bundle, &ep));
  check_rank = AMX_SPMDMyProc();
  CHECK(AMX_SPMDNumProcs() == 2);
  OK(AM_SetHandler(ep, 0, on_returned));
  OK(AM_SetHandler(ep, 1, on_request));
  OK(AM_SetHandler(ep, 2, on_reply));
  OK(AM_SetHandler(ep, 3, on_data));
  OK(AM_SetHandler(ep, 4, on_reply_badly));
  OK(AM_GetTranslationTag(ep, 1, &tag));
  OK(AMX_SPMDBarrier());
  if (check_rank == 0) {
    OK(AM_Request0(ep, 1, 99));
    expect(EBADHANDLER, AM_REQUEST_M);
    OK(AM_RequestI0(ep, 1, 99, data, sizeof data));
    expect(EBADHANDLER, AM_REQUEST_IM);
    OK(AM_RequestXfer0(ep, 1, 0, 3, data, sizeof data));
    expect(EBADSEGOFF, AM_REQUEST_XFER_M);
    OK(AMX_SetTranslationTag(ep, 1, tag + 1));
    OK(AM_Request0(ep, 1, 1));
    while (returned == 0) OK(AM_Poll(bundle));
    OK(AMX_SetTranslationTag(ep, 1, tag));
    expect(EBADTAG, AM_REQUEST_M);
  } else {
    OK(AM_SetSeg(ep, NULL, 0));
  }
  OK(AMX_SPMDBarrier());
  if (check_rank == 1) OK(AM_SetSeg(ep, segment, sizeof segment));
  OK(AMX_SPMDBarrier());
  if (check_rank == 0) {
    OK(AM_RequestXfer0(ep, 1, sizeof segment - sizeof data + 1, 3, data, sizeof data));
    expect(EBADLENGTH, AM_REQUEST_XFER_M);
    OK(AM_Request0(ep, 1, 4));
  } else {
    while (returned == 0) OK(AM_Poll(bundle));
    CHECK(status_seen == EREPLYREJECTED && op_seen == AM_REPLY_M);
  }
  OK(AMX_SPMDBarrier());
  if (check_rank == 0) printf("all came back\n");
  fflush(stdout);
  OK(AMX_SPMDBarrier());
  AMX_SPMDExit(0);
  return 9;
}
