/* The AMMPI names of AM-2, for programs that use them. The library is the same (docs/amudp.md). */
#ifndef FAIRLEAD_AMMPI_H
#define FAIRLEAD_AMMPI_H

#ifndef AMMPI
#define AMMPI 1
#endif
#include <amudp.h>

#define ammpi_stats_t amudp_stats_t
#define ammpi_handler_fn_t amudp_handler_fn_t
#define AMMPI_GetSourceId AMUDP_GetSourceId
#define AMMPI_enEqual AMUDP_enEqual
#define AMMPI_SetTranslationTag AMUDP_SetTranslationTag
#define AMMPI_GetEndpointStatistics AMUDP_GetEndpointStatistics
#define AMMPI_AggregateStatistics AMUDP_AggregateStatistics
#define AMMPI_DumpStatistics AMUDP_DumpStatistics
#define AMMPI_initial_stats AMUDP_initial_stats

#endif
