/* SPDX-License-Identifier: BSD-3-Clause */
/* tutti perf: options, and how the ranks come about. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perf.h"

enum {
	OPT_TRANSPORT = ARGS_FIRST_FREE,
	OPT_ALGORITHM,
	OPT_BUFFERS,
	OPT_REPRODUCIBLE,
	OPT_THREADS,
	OPT_FROM,
	OPT_TO,
	OPT_SHARDED
};

/* -- Ranks ---------------------------------------------------------------- */

static int rank_main(void *self, struct ranks_page *page, tutti_comm_t comm)
{
	return perf_rank_main(self, (struct perf_shared *)page, comm);
}

struct thread_rank {
	const struct perf_options *options;
	struct perf_shared *shared;
	tutti_comm_t comm;
	pthread_t thread;
	int code;
};

static void *thread_main(void *arg)
{
	struct thread_rank *const tr = arg;

	tr->code = perf_rank_main(tr->options, tr->shared, tr->comm);
	return NULL;
}

static int run_thread_ranks(const struct perf_options *options, struct thread_rank *ranks)
{
	int started = 0, error = 0, code = TOOL_GOOD;

	while (started < options->nranks && !error) {
		error = pthread_create(&ranks[started].thread, NULL, thread_main, &ranks[started]);
		started += !error;
	}
	if (error) {
		code = tool_fail("cannot start thread %d of %d: %s", started, options->nranks,
				 strerror(error));
		/* Those that run wait for the missing ones. */
		for (int i = started; i < options->nranks; i++)
			(void)tutti_comm_abort(ranks[i].comm);
	}
	for (int i = 0; i < started; i++) {
		pthread_join(ranks[i].thread, NULL);
		code = ranks[i].code > code ? ranks[i].code : code;
	}
	return code;
}

static int run_threads(const struct perf_options *options)
{
	const size_t n = (size_t)options->nranks;
	struct thread_rank *const ranks = calloc(n, sizeof(*ranks));
	tutti_comm_t *const comms = calloc(n, sizeof(tutti_comm_t));
	struct perf_shared shared = { 0 };
	int code = TOOL_FINDING;
	tutti_status status;

	if (!ranks || !comms) {
		tool_fail("out of memory for %zu ranks", n);
		goto done;
	}
	status = tutti_comm_init_all(comms, options->nranks, NULL);
	if (status) {
		tool_fail("making %zu communicators: %s", n, tool_why(NULL, status));
		goto done;
	}
	for (size_t i = 0; i < n; i++)
		ranks[i] = (struct thread_rank){
			.options = options,
			.shared = &shared,
			.comm = comms[i],
		};
	code = run_thread_ranks(options, ranks);
done:
	free(ranks);
	free(comms);
	return code;
}

/* -- Options -------------------------------------------------------------- */

/* A list for people: "int8, uint8, ...". */
static void add_name(char *names, size_t room, const char *name)
{
	const size_t len = strlen(names);

	snprintf(names + len, room - len, "%s%s", len ? ", " : "", name);
}

static bool take_type(struct perf_options *o, const char *name)
{
	static const struct {
		const char *name;
		tutti_type type;
	} others[] = {
		{ "half", TUTTI_FLOAT16 },       { "float", TUTTI_FLOAT32 },
		{ "double", TUTTI_FLOAT64 },     { "f8e4m3", TUTTI_FLOAT8_E4M3 },
		{ "f8e5m2", TUTTI_FLOAT8_E5M2 },
	};
	char names[256] = "";

	o->ntypes = 0;
	for (int i = 0; i < TUTTI_TYPE_COUNT; i++) {
		const char *candidate = tutti_type_name((tutti_type)i);

		add_name(names, sizeof(names), candidate);
		if (!strcmp(name, candidate) || !strcmp(name, "all"))
			o->types[o->ntypes++] = (tutti_type)i;
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (!strcmp(name, others[i].name))
			o->types[o->ntypes++] = others[i].type;
	if (!o->ntypes)
		tool_bad_usage("there is no type '%s': choose one of %s, or all", name, names);
	return o->ntypes > 0;
}

static bool take_op(struct perf_options *o, const char *name)
{
	char names[128] = "";

	o->nops = 0;
	for (int i = 0; i < TUTTI_OP_COUNT; i++) {
		const char *candidate = tutti_op_name((tutti_op)i);

		add_name(names, sizeof(names), candidate);
		if (!strcmp(name, candidate) || !strcmp(name, "all"))
			o->ops[o->nops++] = (tutti_op)i;
	}
	if (!o->nops)
		tool_bad_usage("there is no operation '%s': choose one of %s, or all", name, names);
	return o->nops > 0;
}

static bool take_sharded(struct perf_options *o, const char *value)
{
	o->sharded_from = !strcmp(value, "from") || !strcmp(value, "both");
	o->sharded_to = !strcmp(value, "to") || !strcmp(value, "both");
	if (o->sharded_from || o->sharded_to)
		return true;
	tool_bad_usage("--sharded '%s': choose from, to or both", value);
	return false;
}

static bool take_option(struct perf_options *o, int id, const char *value)
{
	int number = 0;

	switch (id) {
	case 'n':
		return cli_int("-n", value, 1, RANKS_MOST, &o->nranks);
	case 'b':
		return cli_size("-b", value, 1, &o->min_bytes);
	case 'e':
		return cli_size("-e", value, 1, &o->max_bytes);
	case 'f':
		return cli_size("-f", value, 2, &o->factor);
	case 'd':
		return take_type(o, value);
	case 'o':
		return take_op(o, value);
	case 'r':
		return cli_int("-r", value, 0, RANKS_MOST, &o->root);
	case 'w':
		return cli_int("-w", value, 0, INT_MAX, &o->warmup);
	case 'i':
		return cli_int("-i", value, 1, INT_MAX, &o->iters);
	case 'c':
		if (!cli_int("-c", value, 0, 1, &number))
			return false;
		o->check = number;
		return true;
	case OPT_TRANSPORT:
		o->transport = value;
		return true;
	case OPT_ALGORITHM:
		o->algorithm = value;
		return true;
	case OPT_BUFFERS:
		o->registered = !strcmp(value, "registered");
		if (o->registered || !strcmp(value, "plain"))
			return true;
		tool_bad_usage("--buffers '%s': choose plain or registered", value);
		return false;
	case OPT_REPRODUCIBLE:
		o->reproducible = true;
		return true;
	case OPT_THREADS:
		o->threads = true;
		return true;
	case OPT_FROM:
		return perf_take_ranks("--from", value, RANKS_MOST, &o->from);
	case OPT_TO:
		return perf_take_ranks("--to", value, RANKS_MOST, &o->to);
	case OPT_SHARDED:
		return take_sharded(o, value);
	case 'v':
		o->verbose = true;
		return true;
	default:
		o->json = true;
		return true;
	}
}

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

static bool pairs_fit(const struct perf_options *o)
{
	char names[256] = "";

	for (int i = 0; i < o->ntypes; i++)
		for (int j = 0; j < o->nops; j++)
			if (perf_has_pair(o, o->types[i], o->ops[j]))
				return true;
	for (int op = 0; op < TUTTI_OP_COUNT; op++)
		if (tutti_op_takes((tutti_op)op, o->types[0]))
			add_name(names, sizeof(names), tutti_op_name((tutti_op)op));
	tool_bad_usage("-o %s: %s has no such operation: choose one of %s, or all",
		       tutti_op_name(o->ops[0]), tutti_type_name(o->types[0]), names);
	return false;
}

static bool options_fit(const struct perf_options *o)
{
	const size_t available = o->nranks ? available_memory() : 0;
	const double needed = 2.0 * (double)o->max_bytes * (o->nranks ? o->nranks : 1);

	if (o->min_bytes > o->max_bytes) {
		tool_bad_usage("-b %zu is more than -e %zu", o->min_bytes, o->max_bytes);
		return false;
	}
	if (!pairs_fit(o))
		return false;
	if (o->nranks && o->root >= o->nranks) {
		tool_bad_usage("-r %d is no rank of %d: they are 0 to %d", o->root, o->nranks,
			       o->nranks - 1);
		return false;
	}
	if (o->threads && !o->nranks) {
		tool_bad_usage("--threads needs -n RANKS: how many threads");
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
		.main = rank_main,
	};

	if (!coll_is(o->coll, COLL_REDUCES))
		o->nops = 1;
	if (o->coll == TUTTI_BARRIER) {
		o->ntypes = 1;
		o->max_bytes = o->min_bytes;
	}
	if (!set_environment(o))
		return tool_fail("out of memory");
	return o->threads ? run_threads(o) : ranks_run(&ranks);
}

/* What ended it: ARGS_END, ARGS_HELP or ARGS_BAD. */
static int read_options(struct args *args, struct perf_options *o, const char **collective)
{
	const char *value;
	int id;

	while ((id = args_next(args, &value)) != ARGS_END && id != ARGS_HELP && id != ARGS_BAD) {
		if (id != ARGS_POSITIONAL) {
			if (!take_option(o, id, value))
				return ARGS_BAD;
			continue;
		}
		if (*collective) {
			tool_bad_usage("measures one collective, it was given '%s' and '%s'",
				       *collective, value);
			return ARGS_BAD;
		}
		*collective = value;
	}
	return id;
}

static int read_and_start(struct args *args, struct perf_options *o)
{
	const char *collective = NULL;
	const int end = read_options(args, o, &collective);

	if (end != ARGS_END)
		return end == ARGS_HELP ? TOOL_GOOD : TOOL_USAGE;
	if (!collective)
		return tool_bad_usage("say which collective: all_reduce, for example");
	if (!tool_find_collective(collective, &o->coll) ||
	    (o->algorithm && !tool_find_algorithm(o->coll, o->algorithm)) || !options_fit(o))
		return TOOL_USAGE;
	return start(o);
}

static int run(struct args *args)
{
	struct perf_options o = {
		.min_bytes = 8,
		.max_bytes = (size_t)64 << 20,
		.factor = 2,
		.types = { TUTTI_FLOAT32 },
		.ntypes = 1,
		.ops = { TUTTI_SUM },
		.nops = 1,
		.warmup = 5,
		.check = true,
	};
	const int code = read_and_start(args, &o);

	free(o.from.ranks);
	free(o.to.ranks);
	return code;
}

static const struct args_option options[] = {
	{ 'n', "nranks", "RANKS", "start so many ranks here; without: be one of a launcher's" },
	{ 'b', "minbytes", "SIZE", "smallest size (8)" },
	{ 'e', "maxbytes", "SIZE", "largest size (64M)" },
	{ 'f', "stepfactor", "FACTOR", "from one size to the next (2)" },
	{ 'd', "datatype", "TYPE", "float32 and so on, or all (float32)" },
	{ 'o', "op", "OP", "sum, avg, max, band and so on, or all (sum)" },
	{ 'r', "root", "RANK", "root of broadcast and reduce (0)" },
	{ OPT_FROM, "from", "RANKS", "who has what is handed off: 0-3, say (the first half)" },
	{ OPT_TO, "to", "RANKS", "who gets it (the second half)" },
	{ OPT_SHARDED, "sharded", "SIDE", "its ranks hold a part each: from, to or both" },
	{ 'w', "warmup_iters", "COUNT", "calls before those that are timed (5)" },
	{ 'i', "iters", "COUNT", "calls that are timed (as many as take 30 ms)" },
	{ 'c', "check", "0|1", "compare every element of the results (1)" },
	{ OPT_TRANSPORT, "transport", "LIST", "auto, or a list like shm,tcp" },
	{ OPT_ALGORITHM, "algorithm", "NAME", "instead of the one that the library chooses" },
	{ OPT_BUFFERS, "buffers", "KIND",
	  "plain: from malloc; registered: all ranks can address it" },
	{ OPT_REPRODUCIBLE, "reproducible", NULL,
	  "reductions give the same bits however they are carried out" },
	{ OPT_THREADS, "threads", NULL, "the ranks are threads of one process" },
	{ 'v', "verbose", NULL, "print the plan in use, too" },
	ARGS_OPTION_JSON,
	{ 0 },
};

const struct command command_perf = {
	.name = "perf",
	.summary = "how fast a collective is, and whether its results are right",
	.usage = "perf COLLECTIVE [-n RANKS] [-b MIN] [-e MAX] [OPTIONS]",
	.notes = "Collectives: all_reduce broadcast reduce all_gather reduce_scatter barrier "
		 "send_recv handoff\n"
		 "all_to_all gather scatter all_to_all_v gather_v scatter_v all_gather_v "
		 "reduce_scatter_v.\n"
		 "Sizes are the bytes of the larger buffer of a rank and take K, M, G; the output "
		 "is that of nccl-tests.\n"
		 "Time is the average of calls back to back, on the slowest rank.\n"
		 "send_recv sends to the next rank and receives from the previous one.\n"
		 "Without -n this process is a rank of the job that mpirun, srun or torchrun has "
		 "started.\n",
	.options = options,
	.run = run,
};
