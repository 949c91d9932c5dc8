/* Starting an AM-2 program as a job of several processes, and what those processes do together (docs/amudp.md).
 *
 *   prog NPROCS SPAWN arguments...     this process is the console: it starts the others, and ends with them
 *   mpirun -n NPROCS prog arguments... (or srun) each process joins by PMIx; there is no console
 */
#ifndef FAIRLEAD_AMUDP_SPMD_H
#define FAIRLEAD_AMUDP_SPMD_H

#include <amudp.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Starts `nproc` processes with these words, each of which calls the start-up; not 0 if it could. */
typedef int (*amudp_spawnfn_t)(int nproc, int argc, char **argv);

/* First of all in main(). In the console it does not return: the process ends with the job's exit code. In a worker it
 * takes the words of the console out of argc and argv, and gives a bundle (AM_SEQ) and an endpoint: all peers are mapped
 * by rank, AM_SetExpectedResources is done, the tag is the rank's own. `nproc` 0: argv[1] tells. `depth` 0: the default.
 * `spawn` null: argv[2] tells. `job` (may be null): the same number in all ranks. */
#define AMUDP_SPMDStartup AMUDP_SUFFIXED(AMUDP_SPMDStartup_AMUDP)
extern int AMUDP_SPMDStartup_AMUDP_NDEBUG(int *argc, char ***argv, int nproc, int depth, amudp_spawnfn_t spawn,
                                          uint64_t *job, eb_t *bundle, ep_t *endpoint);
extern int AMUDP_SPMDStartup_AMUDP_DEBUG(int *argc, char ***argv, int nproc, int depth, amudp_spawnfn_t spawn,
                                         uint64_t *job, eb_t *bundle, ep_t *endpoint);
/* Ends all processes of the job with this code; does not return. */
extern int AMUDP_SPMDExit(int code);
typedef void (*amudp_exitcallback_t)(int);
/* Called in each process before it ends, with the code. */
extern int AMUDP_SPMDSetExitCallback(amudp_exitcallback_t callback);
/* What ends the process at last; _exit at first. */
extern void (*AMUDP_SPMDkillmyprocess)(int);

extern int AMUDP_SPMDIsWorker(char **argv);
extern int AMUDP_SPMDNumProcs(void);
extern int AMUDP_SPMDMyProc(void);
/* Both poll the endpoint while they wait. */
extern int AMUDP_SPMDBarrier(void);
extern int AMUDP_SPMDAllGather(void *source, void *destination, size_t length);
/* Of the environment of the console, or of rank 0 if there is none. */
extern const char *AMUDP_SPMDgetenvMaster(const char *name);
/* Control messages are served by a thread; `served` (may be null) becomes 0. */
extern int AMUDP_SPMDHandleControlTraffic(int *served);

extern int AMUDP_SPMDLocalSpawn(int nproc, int argc, char **argv);  /* L: on this host */
extern int AMUDP_SPMDSshSpawn(int nproc, int argc, char **argv);    /* S: on AMUDP_SSH_SERVERS */
extern int AMUDP_SPMDCustomSpawn(int nproc, int argc, char **argv); /* C: by AMUDP_CSPAWN_CMD */
typedef struct {
  char abbrev;
  const char *desc;
  amudp_spawnfn_t fnptr;
} amudp_spawnfn_desc_t;
extern amudp_spawnfn_desc_t const AMUDP_Spawnfn_Desc[]; /* the last has no letter */

#define AMX_SPMDStartup(argc, argv, depth, job, bundle, endpoint) \
  AMUDP_SPMDStartup((argc), (argv), 0, (depth), NULL, (job), (bundle), (endpoint))
#define AMX_SPMDExit AMUDP_SPMDExit
#define AMX_SPMDSetExitCallback AMUDP_SPMDSetExitCallback
#define AMX_SPMDkillmyprocess AMUDP_SPMDkillmyprocess
#define AMX_SPMDIsWorker AMUDP_SPMDIsWorker
#define AMX_SPMDNumProcs AMUDP_SPMDNumProcs
#define AMX_SPMDMyProc AMUDP_SPMDMyProc
#define AMX_SPMDBarrier AMUDP_SPMDBarrier
#define AMX_SPMDAllGather AMUDP_SPMDAllGather
#define AMX_SPMDgetenvMaster AMUDP_SPMDgetenvMaster

#ifdef __cplusplus
}
#endif

#endif
