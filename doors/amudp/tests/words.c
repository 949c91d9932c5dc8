/* prog [NPROCS SPAWN] WORD WORD: each rank prints its arguments, and writes a line to its error output. Rank 0 also
 * copies its input. */
#include <amudp_spmd.h>
#include <string.h>

#include "check.h"

int main(int argc, char** argv) {
  eb_t bundle;
  ep_t ep;
  char line[100];
  OK(AMX_SPMDStartup(&argc, &argv, 0, NULL, &bundle, &ep));
  check_rank = AMX_SPMDMyProc();
  CHECK(argc == 3);
  printf("rank %d of %d: %s, %s\n", check_rank, AMX_SPMDNumProcs(), argv[1], argv[2]);
  fprintf(stderr, "rank %d complains\n", check_rank);
  while (check_rank == 0 && fgets(line, sizeof line, stdin) != NULL)
    printf("rank 0 read: %s%s", line, strchr(line, '\n') != NULL ? "" : "\n");
  OK(AMX_SPMDBarrier());
  AMX_SPMDExit(0);
  return 9;
}
