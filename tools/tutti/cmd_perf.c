/* SPDX-License-Identifier: BSD-3-Clause */
/* tutti perf: options, and how the ranks come about. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "launch.h"
#include "perf.h"

enum { OPT_TRANSPORT = ARGS_FIRST_FREE, OPT_ALGORITHM, OPT_BUFFERS, OPT_THREADS };

#define MAX_RANKS (1 << 16)

/* -- Ranks ---------------------------------------------------------------- */

/* The id is made by rank 0: it starts a thread, which must not be before a
 * fork. The others wait for it here. */
static bool share_id(const struct args *args, struct perf_shared *shared, int rank)
{
	const struct timespec nap = { .tv_nsec = 100000 };
	tutti_status status;

	if (rank == 0) {
		status = tutti_get_unique_id(&shared->id);
		if (status)
			tool_error(args, "rank 0: making the id: %s", tool_why(NULL, status));
		atomic_store(&shared->id_ready, status ? -1 : 1);
	}
	while (atomic_load(&shared->id_ready) == 0)
		nanosleep(&nap, NULL);
	return atomic_load(&shared->id_ready) > 0;
}

static int forked_rank(const struct perf_options *options, struct perf_shared *shared, int rank)
{
	tutti_status status;
	tutti_comm_t comm;

	if (!share_id(options->args, shared, rank))
		return TOOL_FINDING;
	status = tutti_comm_init_rank(&comm, options->nranks, shared->id, rank);
	if (status) {
		perf_report(options, shared, rank, "joining", NULL, status);
		return TOOL_FINDING;
	}
	return perf_rank_main(options, shared, comm);
}

static int run_processes(const struct perf_options *options)
{
	const size_t size = sizeof(struct perf_shared);
	struct perf_shared *shared;
	struct launch launch;
	int code = TOOL_FINDING;
	pid_t pid;

	shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return tool_error(options->args, "mmap of %zu bytes: %s", size, strerror(errno));
	if (!launch_open(&launch, "perf", options->nranks, false))
		goto done;
	launch.quiet_on_failure = true;
	launch_bind(&launch);
	for (int rank = 0; rank < options->nranks; rank++) {
		pid = launch_fork(&launch, rank);
		if (pid == 0) {
			code = forked_rank(options, shared, rank);
			goto done;
		}
		if (pid < 0) {
			launch_end(&launch, SIGTERM, TOOL_FINDING);
			break;
		}
	}
	code = launch_wait(&launch);
	/* A rank's death is a finding; being interrupted ourselves is not. */
	if (code > TOOL_USAGE && !launch.interrupted)
		code = TOOL_FINDING;
done:
	launch_close(&launch);
	munmap(shared, size);
	return code;
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
		code = tool_error(options->args, "cannot start thread %d of %d: %s", started,
				  options->nranks, strerror(error));
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
		tool_error(options->args, "out of memory for %zu ranks", n);
		goto done;
	}
	status = tutti_comm_init_all(comms, options->nranks, NULL);
	if (status) {
		tool_error(options->args, "making %zu communicators: %s", n,
			   tool_why(NULL, status));
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

static int run_launched(const struct perf_options *options)
{
	tutti_comm_t comm;
	const tutti_status status = tutti_comm_init_env(&comm, NULL);

	if (status == TUTTI_EUSAGE)
		return tool_usage(options->args,
				  "%s; or give -n RANKS to start ranks on this machine",
				  tool_why(NULL, status));
	if (status)
		return tool_error(options->args, "joining: %s", tool_why(NULL, status));
	return perf_rank_main(options, NULL, comm);
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
		tool_usage(o->args, "there is no type '%s': choose one of %s, or all", name, names);
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
		tool_usage(o->args, "there is no operation '%s': choose one of %s, or all", name,
			   names);
	return o->nops > 0;
}

static bool take_option(struct perf_options *o, int id, const char *value)
{
	const struct args *const args = o->args;
	int number = 0;

	switch (id) {
	case 'n':
		return args_int(args, "-n", value, 1, MAX_RANKS, &o->nranks);
	case 'b':
		return args_size(args, "-b", value, 1, &o->min_bytes);
	case 'e':
		return args_size(args, "-e", value, 1, &o->max_bytes);
	case 'f':
		return args_size(args, "-f", value, 2, &o->factor);
	case 'd':
		return take_type(o, value);
	case 'o':
		return take_op(o, value);
	case 'r':
		return args_int(args, "-r", value, 0, MAX_RANKS, &o->root);
	case 'w':
		return args_int(args, "-w", value, 0, INT_MAX, &o->warmup);
	case 'i':
		return args_int(args, "-i", value, 1, INT_MAX, &o->iters);
	case 'c':
		if (!args_int(args, "-c", value, 0, 1, &number))
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
		if (!strcmp(value, "plain"))
			return true;
		tool_usage(args, "--buffers '%s' is not there: the buffers are plain", value);
		return false;
	case OPT_THREADS:
		o->threads = true;
		return true;
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

static bool options_fit(const struct perf_options *o)
{
	const size_t available = o->nranks ? available_memory() : 0;
	const double needed = 2.0 * (double)o->max_bytes * (o->nranks ? o->nranks : 1);

	if (o->min_bytes > o->max_bytes) {
		tool_usage(o->args, "-b %zu is more than -e %zu", o->min_bytes, o->max_bytes);
		return false;
	}
	if (o->nranks && o->root >= o->nranks) {
		tool_usage(o->args, "-r %d is no rank of %d: they are 0 to %d", o->root, o->nranks,
			   o->nranks - 1);
		return false;
	}
	if (o->threads && !o->nranks) {
		tool_usage(o->args, "--threads needs -n RANKS: how many threads");
		return false;
	}
	if (available && needed > 0.9 * (double)available) {
		tool_usage(o->args,
			   "-e %zu takes two buffers in each of %d ranks, %.1f GiB, and %.1f GiB "
			   "are free: choose a smaller -e or -n",
			   o->max_bytes, o->nranks, needed / (1 << 30),
			   (double)available / (1 << 30));
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

static int run(struct args *args)
{
	struct perf_options o = {
		.args = args,
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
	const char *value, *collective = NULL;
	int id;

	while ((id = args_next(args, &value)) != ARGS_END) {
		if (id == ARGS_HELP)
			return TOOL_GOOD;
		if (id == ARGS_POSITIONAL && collective)
			return tool_usage(args,
					  "measures one collective, it was given '%s' and '%s'",
					  collective, value);
		if (id == ARGS_POSITIONAL)
			collective = value;
		else if (id == ARGS_BAD || !take_option(&o, id, value))
			return TOOL_USAGE;
	}
	if (!collective)
		return tool_usage(args, "say which collective: all_reduce, for example");
	if (!tool_find_collective(args, collective, &o.coll) ||
	    (o.algorithm && !tool_find_algorithm(args, o.coll, o.algorithm)) || !options_fit(&o))
		return TOOL_USAGE;
	if (!perf_reduces(o.coll))
		o.nops = 1;
	if (o.coll == TUTTI_BARRIER) {
		o.ntypes = 1;
		o.max_bytes = o.min_bytes;
	}
	if (!set_environment(&o))
		return tool_error(args, "out of memory");
	if (!o.nranks)
		return run_launched(&o);
	return o.threads ? run_threads(&o) : run_processes(&o);
}

static const struct args_option options[] = {
	{ 'n', "nranks", "RANKS", "start so many ranks here; without: be one of a launcher's" },
	{ 'b', "minbytes", "SIZE", "smallest size (8)" },
	{ 'e', "maxbytes", "SIZE", "largest size (64M)" },
	{ 'f', "stepfactor", "FACTOR", "from one size to the next (2)" },
	{ 'd', "datatype", "TYPE", "float32 and so on, or all (float32)" },
	{ 'o', "op", "OP", "sum, prod, max, min, avg or all (sum)" },
	{ 'r', "root", "RANK", "root of broadcast and reduce (0)" },
	{ 'w', "warmup_iters", "COUNT", "calls before those that are timed (5)" },
	{ 'i', "iters", "COUNT", "calls that are timed (as many as take 30 ms)" },
	{ 'c', "check", "0|1", "compare every element of the results (1)" },
	{ OPT_TRANSPORT, "transport", "LIST", "auto, or a list like shm,tcp" },
	{ OPT_ALGORITHM, "algorithm", "NAME", "instead of the one that the library chooses" },
	{ OPT_BUFFERS, "buffers", "plain", "memory from malloc, the only kind yet (plain)" },
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
		 "send_recv.\n"
		 "Sizes are the bytes of the larger buffer of a rank and take K, M, G; the output "
		 "is that of nccl-tests.\n"
		 "Time is the average of calls back to back, on the slowest rank.\n"
		 "send_recv sends to the next rank and receives from the previous one.\n"
		 "Under mpirun or srun, TUTTI_COMM_FILE must name a new file that all ranks see, "
		 "or\nTUTTI_COMM_ID a host:port of rank 0.\n",
	.options = options,
	.run = run,
};
