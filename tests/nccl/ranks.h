/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_NCCL_RANKS_H
#define TESTS_NCCL_RANKS_H

/* Ranks that are threads of the test and know libnccl.so.2 alone.
 *
 * cmocka's assertions jump and so belong to the main thread: ranks use CHECK, which prints, counts
 * and goes on. */

#include <stdbool.h>

#include "nccl/nccl_device.h"

typedef void (*ranks_fn)(ncclComm_t comm, int rank, int n, void *arg);

/* Run fn on n ranks of one communicator, each on a thread; it is destroyed afterwards unless fn has
 * ended it (ranks_ended()). How many checks failed. */
int ranks_run(int n, ranks_fn fn, void *arg);
/* Each rank calls fn(rank) before its communicator is made, from now on; NULL: nothing. */
void ranks_prepare(void (*fn)(int rank));
/* Of the calling rank: its communicator is gone. */
void ranks_ended(void);
/* Wait for the others of ranks_run(). */
void ranks_meet(void);

/* Checks that have failed so far. */
int ranks_failures(void);
/* One more. Always false. */
bool ranks_failed(const char *file, int line, const char *what);

#define CHECK(condition)            ((condition) ? true : ranks_failed(__FILE__, __LINE__, #condition))
#define CHECK_OK(call)              CHECK((call) == ncclSuccess)
/* A refusal has a reason. */
#define CHECK_REFUSED(call, result) CHECK((call) == (result) && *ncclGetLastError(NULL) != '\0')

#endif
