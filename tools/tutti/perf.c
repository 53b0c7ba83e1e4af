/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "names.h"
#include "tool.h"

/* -- Ranks ---------------------------------------------------------------- */

struct thread_rank {
	const struct ranks *ranks;
	struct perf_shared *shared;
	tutti_comm_t comm;
	pthread_t thread;
	int code;
};

static void *thread_main(void *arg)
{
	struct thread_rank *const tr = arg;

	tr->code = ranks_be(tr->ranks, &tr->shared->page, tr->comm);
	return NULL;
}

static int run_thread_ranks(int nranks, struct thread_rank *ranks)
{
	int started = 0, error = 0, code = TOOL_GOOD;

	while (started < nranks && !error) {
		error = pthread_create(&ranks[started].thread, NULL, thread_main, &ranks[started]);
		started += !error;
	}
	if (error) {
		code = tool_fail("cannot start thread %d of %d: %s", started, nranks,
				 strerror(error));
		/* The ranks that run wait for the missing ones. */
		for (int i = started; i < nranks; i++)
			(void)tutti_comm_abort(ranks[i].comm);
	}
	for (int i = 0; i < started; i++) {
		pthread_join(ranks[i].thread, NULL);
		code = ranks[i].code > code ? ranks[i].code : code;
	}
	return code;
}

static int run_threads(const struct ranks *all)
{
	const size_t n = (size_t)all->nranks;
	struct thread_rank *const ranks = calloc(n, sizeof(*ranks));
	tutti_comm_t *const comms = calloc(n, sizeof(tutti_comm_t));
	struct perf_shared shared = { 0 };
	int code = TOOL_FINDING;
	tutti_status status;

	if (!ranks || !comms) {
		tool_fail("out of memory for %zu ranks", n);
		goto done;
	}
	status = tutti_comm_init_all(comms, all->nranks, NULL);
	if (status) {
		tool_fail("making %zu communicators: %s", n, tool_why(NULL, status));
		goto done;
	}
	for (size_t i = 0; i < n; i++)
		ranks[i] = (struct thread_rank){ all, &shared, comms[i], .code = TOOL_GOOD };
	code = run_thread_ranks(all->nranks, ranks);
done:
	free(ranks);
	free(comms);
	return code;
}

/* -- Options -------------------------------------------------------------- */

/* Bytes that can be had without swapping; 0: not known. */
static size_t available_memory(void)
{
	FILE *const file = fopen("/proc/meminfo", "re");
	unsigned long long kb = 0;
	char line[128];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "MemAvailable: %llu kB", &kb) == 1)
			break;
	if (file)
		fclose(file);
	return (size_t)kb * 1024;
}

/* The i-th operation that takes a type. */
static const char *fitting_op_name(const void *type, int i)
{
	for (int op = 0; op < TUTTI_OP_COUNT; op++)
		if (tutti_op_takes((tutti_op)op, *(const tutti_type *)type) && i-- == 0)
			return tutti_op_name((tutti_op)op);
	return NULL;
}

static bool pairs_fit(const struct perf_options *o)
{
	char list[256];

	for (int i = 0; i < o->types.n; i++)
		for (int j = 0; j < o->ops.n; j++)
			if (perf_has_pair(o, o->types.at[i], o->ops.at[j]))
				return true;
	names_join(&(struct names){ fitting_op_name, &o->types.at[0] }, ", ", list, sizeof(list));
	tool_bad_usage("-o %s: %s has no such operation: choose one of %s, or all",
		       tutti_op_name(o->ops.at[0]), tutti_type_name(o->types.at[0]), list);
	return false;
}

/* What is given and means nothing here would be taken for what was measured. */
static bool take_call(struct perf_options *o)
{
	if (o->ops.n && !coll_is(o->coll, COLL_REDUCES)) {
		tool_bad_usage("-o is for what reduces, not for %s",
			       tutti_collective_name(o->coll));
		return false;
	}
	if (o->root >= 0 && !coll_is(o->coll, COLL_ROOTED)) {
		tool_bad_usage("-r is for what has a root, not for %s",
			       tutti_collective_name(o->coll));
		return false;
	}
	if (!o->ops.n)
		o->ops.at[o->ops.n++] = TUTTI_SUM;
	if (o->root < 0)
		o->root = 0;
	return true;
}

static bool options_fit(const struct perf_options *o)
{
	const size_t available = o->nranks ? available_memory() : 0;
	const double needed = 2.0 * (double)o->max_bytes * (o->nranks ? o->nranks : 1);

	if (o->min_bytes > o->max_bytes) {
		tool_bad_usage("-b %zu is more than -e %zu", o->min_bytes, o->max_bytes);
		return false;
	}
	if (o->coll != TUTTI_HANDOFF && (o->from.n || o->to.n || o->sharded)) {
		tool_bad_usage("--from, --to and --sharded are for handoff, not for %s",
			       tutti_collective_name(o->coll));
		return false;
	}
	if (!pairs_fit(o) || !ranks_are_few(o->nranks))
		return false;
	if (o->nranks && o->root >= o->nranks) {
		tool_bad_usage("-r %d is no rank of %d: they are 0 to %d", o->root, o->nranks,
			       o->nranks - 1);
		return false;
	}
	if (available && needed > 0.9 * (double)available) {
		tool_bad_usage(
			"-e %zu takes two buffers in each of %d ranks, %.1f GiB, and %.1f GiB "
			"are free: choose a smaller -e or -n",
			o->max_bytes, o->nranks, needed / (1 << 30), (double)available / (1 << 30));
		return false;
	}
	return true;
}

/* What was asked for here wins over the environment. Before the library looks
 * at it, and before there is a second thread. */
static bool set_environment(const struct perf_options *o)
{
	char text[256];

	if (o->transport && setenv("TUTTI_TRANSPORT", o->transport, 1))
		return false;
	if (!o->algorithm)
		return true;
	snprintf(text, sizeof(text), "%s:%s", tutti_collective_name(o->coll), o->algorithm);
	return setenv("TUTTI_ALGO", text, 1) == 0;
}

static int start(struct perf_options *o)
{
	const struct ranks ranks = {
		.nranks = o->nranks,
		.page_bytes = sizeof(struct perf_shared),
		.self = o,
		.main = perf_rank_main,
	};

	if (o->coll == TUTTI_BARRIER) {
		o->types.n = 1;
		o->max_bytes = o->min_bytes;
	}
	if (!set_environment(o))
		return tool_fail("out of memory");
	return o->threads ? run_threads(&ranks) : ranks_run(&ranks);
}

int perf_run(void *options)
{
	struct perf_options *const o = options;

	if ((o->algorithm && !coll_find_algorithm(o->coll, o->algorithm)) || !take_call(o) ||
	    !options_fit(o))
		return TOOL_USAGE;
	return start(o);
}
