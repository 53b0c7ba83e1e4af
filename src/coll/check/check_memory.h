/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_COLL_CHECK_MEMORY_H
#define TTI_COLL_CHECK_MEMORY_H

/* Memory programs of all ranks (check_memory.c), and, private to their check, what is in memory and
 * the order of all that touches it (check_cells.c). */

#include "coll/check/check_set.h"
#include "util/vec.h"

struct tti_check_reader {
	int32_t oper, next;
};

struct tti_check_cell {
	int32_t writer;  /* the operation that wrote it last, -1: none       */
	int32_t kept;    /* a COPY in place, which leaves it as it is, -1: none */
	int32_t readers; /* since then: head of a list, -1: none             */
	int32_t holds;   /* the chunk whose value it has, -1: it has none yet */
};

struct tti_check_memory_run {
	struct tti_arena arena;
	const struct tti_check *check;
	int32_t *next;               /* of each rank: its next operation, numbered through */
	int32_t *clock;              /* [n * n]                                            */
	int32_t *told;               /* of each NOTIFY the clock of its rank, n each       */
	int32_t *told_at;            /* of each operation: its place in told[]             */
	int32_t *sent, *taken;       /* of each queue that sends                            */
	struct tti_check_cell *cell; /* [n * 2 * nchunks]: inputs and outputs of a rank    */
	uint64_t *value;             /* of each cell                                       */
	uint64_t *scratch;           /* of all ranks                                       */
	int32_t *scratch_base;       /* [n + 1]                                            */
	int32_t *touched;            /* [n * n]: of rank a's memory by rank b, the operation
				  that did last, plus 1; 0: none                      */
	uint64_t *result;            /* of the operation that runs                          */
	TTI_VEC(struct tti_check_reader) reader;
};

/* An access: operation `oper` touches chunk `chunk` of rank `owner`. */
struct tti_check_access {
	int32_t oper;
	int owner, chunk;
	bool is_output, writes;
};

/* The step by which an operation reads from a peer, or puts. */
int tti_check_access_step(const struct tti_check *check, int32_t oper, int peer, bool is_put);

/* The cell of a chunk's input or output at a rank, and its value. */
size_t tti_check_cell_of(const struct tti_check_memory_run *run, int rank, int chunk,
			 bool is_output);
uint64_t *tti_check_cell_value(const struct tti_check_memory_run *run, size_t cell);

/* Let all inputs hold the contributions of their ranks. */
void tti_check_fill_cells(struct tti_check_memory_run *run);

/* Do an access: get the value that is read, or write run->result. Quiet TUTTI_EINVAL: nothing
 * orders it after another access, or the memory does not hold that chunk. */
TUTTI_CHECKED tutti_status tti_check_read(struct tti_check_memory_run *run,
					  const struct tti_check_access *access,
					  const uint64_t **value);
TUTTI_CHECKED tutti_status tti_check_write(struct tti_check_memory_run *run,
					   const struct tti_check_access *access);

/* Run all memory programs, whose operations have one order. */
TUTTI_CHECKED tutti_status tti_check_memory(const struct tti_check *check);

#endif
