/* Shared by the test programs: a check that reports what failed, and in which rank. */
#ifndef FAIRLEAD_AMUDP_CHECK_H
#define FAIRLEAD_AMUDP_CHECK_H

#include <stdio.h>
#include <stdlib.h>

static int check_rank = -1;

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "rank %d, %s:%d: not so: %s\n", check_rank, __FILE__, __LINE__, #condition); \
      _Exit(9);                                                                                    \
    }                                                                                              \
  } while (0)
#define CHECK_CODE(call, wanted)                                                                                       \
  do {                                                                                                                 \
    const int code_ = (call);                                                                                          \
    if (code_ != (wanted)) {                                                                                           \
      fprintf(stderr, "rank %d, %s:%d: %s gave %d, want %s\n", check_rank, __FILE__, __LINE__, #call, code_, #wanted); \
      _Exit(9);                                                                                                        \
    }                                                                                                                  \
  } while (0)
#define OK(call) CHECK_CODE(call, AM_OK)

#endif
