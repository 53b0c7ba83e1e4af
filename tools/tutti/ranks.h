/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_RANKS_H
#define TOOL_RANKS_H

/* How the ranks of a verb come about: as processes that are started here, or this one
 * process is a rank of some launcher's. */

#include <stdatomic.h>

#include "tool.h"

#define RANKS_MOST (1 << 16)

/* Memory that the ranks share if they were started here; a verb may have more behind it. */
struct ranks_page {
	atomic_int id_ready; /* 1: id is good, -1: there will be none */
	tutti_unique_id id;
	atomic_uint said; /* 1 << -status: what has been reported */
};

/* One rank, in its process or thread. */
struct rank {
	struct ranks_page *page; /* NULL: a launcher has started it */
	tutti_comm_t comm;
	int rank, n;
	bool failed; /* a call did, and that was printed: the communicator is aborted at the end */
};

struct ranks {
	int nranks;        /* to start; 0: a launcher has */
	size_t page_bytes; /* at least sizeof(struct ranks_page) */
	void *self;
	/* The work of one rank between joining and leaving. Returns its exit code unless it has failed. */
	int (*main)(void *self, struct rank *rank);
};

/* Whether this machine can start so many in a sensible time. If not that is printed. */
bool ranks_are_few(int nranks);

/* The exit code of the program: that of the first rank that failed. */
int ranks_run(const struct ranks *ranks);

/* Be the rank of a communicator, which goes: the exit code. */
int ranks_be(const struct ranks *ranks, struct ranks_page *page, tutti_comm_t comm);

/* Whether a call of a rank was good. If not it has failed, and says so unless another of ours has said
 * the same: one dead rank fails the calls of all others. */
bool ranks_is_good(struct rank *rank, tutti_status status, const char *what);

#endif
