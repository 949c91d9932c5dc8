/* Starting an AM-2 program as a job of several processes (ranks), and collective calls of a job (docs/amudp.md).
 *
 *   prog NPROCS SPAWN arguments...     this process is the console: it starts the ranks, and ends with them
 *   mpirun -n NPROCS prog arguments... (or srun) each process is a rank and joins by PMIx; rank 0 contains the console
 *
 * One thread at a time makes these calls. Those that return int return AM_OK or an AM_ERR_ code, unless described
 * otherwise.
 */
#ifndef FAIRLEAD_AMUDP_SPMD_H
#define FAIRLEAD_AMUDP_SPMD_H

#include <amudp.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Starts `nproc` processes with these command-line words. Each of them must call AMX_SPMDStartup. Returns 0 on failure,
 * else another value. */
typedef int (*amudp_spawnfn_t)(int nproc, int argc, char** argv);

/* Call first in main(). In the console it does not return: the process ends with the job's exit code. In a rank it
 * makes an AM_SEQ bundle and an endpoint. The endpoint's translation table contains all ranks by number, its tag is
 * unique in the job, and AM_SetExpectedResources was called. argc and argv stay as they are: the console starts ranks
 * without its own words.
 *
 *   nproc  number of ranks; 0: the first word of the command line
 *   depth  credits to each peer, up to AMUDP_MAX_NETWORKDEPTH; 0: AMUDP_NETWORKDEPTH, or 128
 *   spawn  how to start ranks; null: by the next word of the command line, or AMUDP_SPAWNFN (L, S or C)
 *   job    receives a number that is the same in all ranks of the job; may be null
 *
 * AM_ERR_RESOURCE: it was called before, or no endpoint can be opened. If the process cannot join the job, or its
 * command line or environment is wrong, a line on stderr gives the reason, and the process ends with code 2. */
#define AMUDP_SPMDStartup AMUDP_SUFFIXED(AMUDP_SPMDStartup_AMUDP)
extern int AMUDP_SPMDStartup_AMUDP_NDEBUG(int* argc, char*** argv, int nproc, int depth, amudp_spawnfn_t spawn,
                                          uint64_t* job, eb_t* bundle, ep_t* endpoint);
extern int AMUDP_SPMDStartup_AMUDP_DEBUG(int* argc, char*** argv, int nproc, int depth, amudp_spawnfn_t spawn,
                                         uint64_t* job, eb_t* bundle, ep_t* endpoint);
/* Ends all processes of the job with this code. Does not return. In a child of fork() it ends only that child. */
extern int AMUDP_SPMDExit(int code);
typedef void (*amudp_exitcallback_t)(int);
/* Sets a function that each process calls with the exit code before it ends; null: none. */
extern int AMUDP_SPMDSetExitCallback(amudp_exitcallback_t callback);
/* The function that finally ends a process; initially _exit. */
extern void (*AMUDP_SPMDkillmyprocess)(int);

/* Returns 1 if this process is a rank, or was started to become one; else 0. Ignores `argv`. */
extern int AMUDP_SPMDIsWorker(char** argv);
/* The number of ranks, and the rank of this process from 0. Before the start: 0 and -1. */
extern int AMUDP_SPMDNumProcs(void);
extern int AMUDP_SPMDMyProc(void);
/* Waits until all ranks have made this call. Polls the bundle of the start meanwhile, which runs handlers. */
extern int AMUDP_SPMDBarrier(void);
/* The same, and gathers `length` bytes at `source` from each rank into `destination`, in rank order: NumProcs * length
 * bytes, at most 256 MiB. AM_ERR_RESOURCE: the ranks' lengths differ, or this is a child of fork(). */
extern int AMUDP_SPMDAllGather(void* source, void* destination, size_t length);
/* Returns a variable from the environment of the console, or of rank 0 if that contains the console. Null if it is not
 * set, or not passed to this host (AMUDP_PASSENV). Valid until the process ends. */
extern const char* AMUDP_SPMDgetenvMaster(const char* name);
/* Does nothing, since a thread handles control messages. Sets *served to 0, unless null. */
extern int AMUDP_SPMDHandleControlTraffic(int* served);

/* The three ways to start ranks, as amudp_spawnfn_t. */
extern int AMUDP_SPMDLocalSpawn(int nproc, int argc, char** argv);  /* L: on this host */
extern int AMUDP_SPMDSshSpawn(int nproc, int argc, char** argv);    /* S: by ssh on AMUDP_SSH_SERVERS in turn */
extern int AMUDP_SPMDCustomSpawn(int nproc, int argc, char** argv); /* C: by AMUDP_CSPAWN_CMD */
typedef struct {
  char abbrev; /* letter on the command line; 0 in the last entry */
  const char* desc;
  amudp_spawnfn_t fnptr;
} amudp_spawnfn_desc_t;
extern amudp_spawnfn_desc_t const AMUDP_Spawnfn_Desc[];

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
