/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_RANKS_H
#define TOOL_RANKS_H

/* How the ranks of a verb come about: as processes that are started here, or this one
 * process is a rank of some launcher's. */

#include <stdatomic.h>

#include "tool.h"

#define RANKS_MOST (1 << 16)

/* What all ranks see that were started here; a verb may have more behind it. */
struct ranks_page {
	atomic_int id_ready; /* 1: id is good, -1: there will be none */
	tutti_unique_id id;
	atomic_uint said; /* 1 << -status: what has been reported */
};

struct ranks {
	int nranks;        /* to start; 0: a launcher has */
	size_t page_bytes; /* at least sizeof(struct ranks_page) */
	void *self;
	/* Everything of one rank; the exit code of its process. page is NULL if a launcher
	 * started it. The communicator is its own. */
	int (*main)(void *self, struct ranks_page *page, tutti_comm_t comm);
};

/* The exit code of the program: that of the first rank that failed. */
int ranks_run(const struct ranks *ranks);

/* Report what failed on a rank, unless another of ours has reported the same: one dead rank
 * fails the calls of all others. */
void ranks_report(struct ranks_page *page, int rank, const char *what, tutti_comm_t comm,
		  tutti_status status);

#endif
