/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TUTTI_INSPECT_H
#define TUTTI_INSPECT_H

/* What tools ask the library: its parameters, its algorithms, what a call
 * would do. Nothing here moves data. */

#include "tutti/tutti.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, value, text): the collectives that have programs. */
#define TUTTI_COLLECTIVE_MAP(X)                \
	X(ALL_REDUCE, 0, "all_reduce")         \
	X(BROADCAST, 1, "broadcast")           \
	X(REDUCE, 2, "reduce")                 \
	X(ALL_GATHER, 3, "all_gather")         \
	X(REDUCE_SCATTER, 4, "reduce_scatter") \
	X(BARRIER, 5, "barrier")               \
	X(SEND_RECV, 6, "send_recv")

typedef enum tutti_collective {
#define X(name, value, text) TUTTI_##name = (value),
	TUTTI_COLLECTIVE_MAP(X)
#undef X
} tutti_collective;
#define TUTTI_COLLECTIVE_COUNT 7

TUTTI_API const char *tutti_collective_name(tutti_collective coll);

/* One parameter of the environment. Strings are the library's. */
struct tutti_param_info {
	const char *variable;      /* "TUTTI_SHM_SLOT"                  */
	const char *type;          /* "size", "int", "bool", ...        */
	const char *default_value; /* as one would write it             */
	const char *range;         /* "4K:64M", "" if there is none     */
	const char *help;
	const char *value; /* what is in force                          */
	int is_set;        /* 1: from the environment                   */
};

/* The i-th parameter, i = 0, 1, ...; TUTTI_EINVAL past the last. Any thread. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_param_get(int index, struct tutti_param_info *out);

/* The name of the i-th algorithm of a collective, NULL past the last. */
TUTTI_API const char *tutti_algorithm_name(tutti_collective coll, int index);

/* The programs of all ranks as text, one step a line, as `tutti show` prints
 * them: *out is the caller's, to be freed with free(). `rank` >= 0 prints that
 * rank alone. TUTTI_EINVAL names what is unknown. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_program_print(tutti_collective coll,
							 const char *algorithm, int nranks,
							 int root, int rank, int json, char **out);

/* Read programs as tutti_program_print() writes them (text form) and prove
 * them: every output holds what it should, nothing deadlocks at any number of
 * slots >= 1. TUTTI_EINVAL with line, rank, step and reason otherwise. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_program_verify(const char *text);

/* What the last finished call on this communicator did. */
struct tutti_call_report {
	const char *algorithm; /* "direct"; the library's */
	const char *transport; /* "shm", "tcp", "self", "shm+tcp" */
	int channels;
};
TUTTI_API TUTTI_CHECKED tutti_status tutti_comm_last_call(tutti_comm_t comm,
							  struct tutti_call_report *out);

#ifdef __cplusplus
}
#endif

#endif
