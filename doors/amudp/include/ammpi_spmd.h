/* The AMMPI form of starting a job: for mpirun and srun, without a console and its words on the command line. Without a
 * launcher the program is a job of one process. */
#ifndef FAIRLEAD_AMMPI_SPMD_H
#define FAIRLEAD_AMMPI_SPMD_H

#include <ammpi.h>
#include <amudp_spmd.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As AMUDP_SPMDStartup() in a rank. It leaves argc and argv as they are. */
extern int AMMPI_SPMDStartup(int* argc, char*** argv, int depth, uint64_t* job, eb_t* bundle, ep_t* endpoint);
#define AMMPI_SPMDExit AMUDP_SPMDExit
#define AMMPI_SPMDSetExitCallback AMUDP_SPMDSetExitCallback
#define AMMPI_SPMDkillmyprocess AMUDP_SPMDkillmyprocess
#define AMMPI_SPMDNumProcs AMUDP_SPMDNumProcs
#define AMMPI_SPMDMyProc AMUDP_SPMDMyProc
#define AMMPI_SPMDBarrier AMUDP_SPMDBarrier
#define AMMPI_SPMDAllGather AMUDP_SPMDAllGather

#undef AMX_SPMDStartup
#define AMX_SPMDStartup(argc, argv, depth, job, bundle, endpoint) \
  AMMPI_SPMDStartup((argc), (argv), (depth), (job), (bundle), (endpoint))

#ifdef __cplusplus
}
#endif

#endif
