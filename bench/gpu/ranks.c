/* SPDX-License-Identifier: BSD-3-Clause */
#include "ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vector.h"

static const size_t sizes[] = {
	8, 256, 4096, 65536, (size_t)1 << 20, (size_t)16 << 20, (size_t)128 << 20, (size_t)1 << 30
};

#define NSIZES (sizeof(sizes) / sizeof(sizes[0]))

/* Memory of the host is slower. */
static size_t most_of(const struct rank *rank)
{
	const size_t pinned = (size_t)128 << 20;

	return !strcmp(rank->kind, "pinned") && rank->job->most > pinned ? pinned : rank->job->most;
}

/* The largest of what the ranks say, printed by rank 0. */
static double report_most(struct rank *rank, const char *what, double figure, const char *unit)
{
	struct ranks *job = rank->job;
	double most = 0;

	job->figures[rank->number] = figure;
	(void)pthread_barrier_wait(&job->all);
	for (int number = 0; number < job->n; number++)
		most = job->figures[number] > most ? job->figures[number] : most;
	if (rank->number == 0)
		report("calls", what, most, unit);
	(void)pthread_barrier_wait(&job->all);
	return most;
}

static void report_kind(struct rank *rank, const char *what, double figure, const char *unit)
{
	char text[96];

	(void)snprintf(text, sizeof(text), "%s, %s", rank->kind, what);
	(void)report_most(rank, text, figure, unit);
}

/* -- Results --------------------------------------------------------------------------- */

static void verify(struct rank *rank, size_t nbytes)
{
	size_t nwrong;
	char what[48];

	vector_fill(rank->input, nbytes, rank->number, rank->staging, rank->stream);
	CUDA(MemsetAsync(rank->output, 0xff, nbytes, rank->stream));
	library.all_reduce(rank, nbytes);
	CUDA(StreamSynchronize(rank->stream));
	nwrong = vector_count_wrong(rank->output, nbytes, rank->job->n, 0, rank->staging,
				    rank->stream);
	(void)snprintf(what, sizeof(what), "%s, wrong", size_name(nbytes).text);
	report_kind(rank, what, (double)nwrong, "elements");
	rank->nwrong += nwrong;
}

/* -- Times ------------------------------------------------------------------------------- */

struct calls {
	struct rank *rank;
	size_t nbytes;
	cudaGraphExec_t exec;
};

static void call(void *arg, cudaStream_t stream)
{
	const struct calls *calls = arg;

	(void)stream; /* is the rank's */
	library.all_reduce(calls->rank, calls->nbytes);
}

static void call_on_host(void *arg)
{
	call(arg, NULL);
}

static void call_and_wait(void *arg)
{
	const struct calls *calls = arg;

	library.all_reduce(calls->rank, calls->nbytes);
	CUDA(StreamSynchronize(calls->rank->stream));
}

static void launch_graph(void *arg, cudaStream_t stream)
{
	const struct calls *calls = arg;

	CUDA(GraphLaunch(calls->exec, stream));
}

static void measure_size(struct rank *rank, size_t nbytes)
{
	const int ncalls = nbytes <= 65536 ? 100 : nbytes <= (size_t)16 << 20 ? 20 : 3;
	struct calls calls = { rank, nbytes, NULL };
	const struct size_name what = size_name(nbytes);

	verify(rank, nbytes);
	report_kind(rank, what.text, device_us(rank->stream, 5, ncalls, call, &calls), "us");
}

/* Capture and replay of ten calls. */
static void measure_graph(struct rank *rank, size_t nbytes)
{
	struct calls calls = { rank, nbytes, NULL };
	cudaGraph_t graph;

	CUDA(StreamBeginCapture(rank->stream, CUDA_CAPTURE_THREAD_LOCAL));
	for (int i = 0; i < 10; i++)
		library.all_reduce(rank, nbytes);
	CUDA(StreamEndCapture(rank->stream, &graph));
	CUDA(GraphInstantiate(&calls.exec, graph, 0));
	CUDA(GraphUpload(calls.exec, rank->stream));
	CUDA(StreamSynchronize(rank->stream));
	(void)pthread_barrier_wait(&rank->job->all);
	report_kind(rank, "8 B, of a graph of 10 calls",
		    device_us(rank->stream, 5, 10, launch_graph, &calls) / 10, "us");
	CUDA(GraphExecDestroy(calls.exec));
	CUDA(GraphDestroy(graph));
}

static void allocate(struct rank *rank)
{
	void **const memory[] = { &rank->input, &rank->output };

	for (int i = 0; i < 2; i++) {
		if (!strcmp(rank->kind, "registered"))
			library.allocate(rank, memory[i], most_of(rank));
		else if (!strcmp(rank->kind, "pinned"))
			CUDA(MallocHost(memory[i], most_of(rank)));
		else
			CUDA(Malloc(memory[i], most_of(rank)));
	}
}

static void release(struct rank *rank)
{
	void *const memory[] = { rank->input, rank->output };

	for (int i = 0; i < 2; i++) {
		if (!strcmp(rank->kind, "registered"))
			library.release(rank, memory[i], most_of(rank));
		else if (!strcmp(rank->kind, "pinned"))
			CUDA(FreeHost(memory[i]));
		else
			CUDA(Free(memory[i]));
	}
}

static void measure_kind(struct rank *rank)
{
	struct calls calls = { rank, 8, NULL };
	const bool is_registered = !strcmp(rank->kind, "registered");

	allocate(rank);
	if (is_registered)
		library.enroll(rank);
	/* Making memory may wait for the device, on which a rank that is ahead waits for this one. */
	(void)pthread_barrier_wait(&rank->job->all);
	for (size_t i = 0; i < NSIZES; i++)
		if (sizes[i] <= most_of(rank))
			measure_size(rank, sizes[i]);
	report_kind(rank, "the call of 8 B (host)", host_us(200, call_on_host, &calls), "us");
	CUDA(StreamSynchronize(rank->stream));
	report_kind(rank, "8 B and wait for the stream", host_us(200, call_and_wait, &calls), "us");
	if (strcmp(rank->kind, "pinned") != 0)
		measure_graph(rank, 8);
	(void)pthread_barrier_wait(&rank->job->all);
	if (is_registered)
		library.expel(rank);
	release(rank);
}

/* -- Ranks ------------------------------------------------------------------------------- */

static void measure_init(struct rank *rank)
{
	size_t before, after, nbytes;
	double from;

	CUDA(MemGetInfo(&before, &nbytes));
	(void)pthread_barrier_wait(&rank->job->all);
	from = now_us();
	library.init(rank);
	(void)report_most(rank, "init", (now_us() - from) / 1e3, "ms");
	CUDA(MemGetInfo(&after, &nbytes));
	if (rank->number == 0)
		report("calls", "memory of the device that init took, all ranks",
		       ((double)before - (double)after) / (1 << 20), "MiB");
}

static void measure_memory(struct rank *rank)
{
	if (library.memory)
		(void)report_most(rank, "memory of the device in the end, the library says",
				  (double)library.memory(rank) / (1 << 20), "MiB");
}

struct start {
	struct rank rank;
	char **kinds;
	int nkinds;
};

static void *run(void *arg)
{
	static char plain[] = "plain";
	struct start *start = arg;
	struct rank *rank = &start->rank;
	CUDA(SetDevice(rank->device));
	CUDA(StreamCreateWithFlags(&rank->stream, CUDA_NON_BLOCKING));
	CUDA(MallocHost(&rank->staging, VECTOR_STAGING));
	measure_init(rank);
	for (int i = 0; i < (start->nkinds ? start->nkinds : 1); i++) {
		rank->kind = start->nkinds ? start->kinds[i] : plain;
		(void)pthread_barrier_wait(&rank->job->all);
		measure_kind(rank);
	}
	measure_memory(rank);
	library.destroy(rank);
	CUDA(FreeHost(rank->staging));
	CUDA(StreamDestroy(rank->stream));
	return NULL;
}

static bool is_kind(const char *text)
{
	return !strcmp(text, "plain") || !strcmp(text, "registered") || !strcmp(text, "pinned");
}

/* Whether all results were right. */
static bool run_all(struct ranks *job, char **kinds, int nkinds)
{
	static struct start starts[RANKS_MOST];
	pthread_t threads[RANKS_MOST];
	size_t nwrong = 0;

	for (int number = 0; number < job->n; number++) {
		starts[number] = (struct start){
			.rank = { .job = job, .number = number, .device = number % job->ndevices },
			.kinds = kinds,
			.nkinds = nkinds,
		};
		if (pthread_create(&threads[number], NULL, run, &starts[number]) != 0)
			give_up("a thread could not be started\n");
	}
	for (int number = 0; number < job->n; number++) {
		(void)pthread_join(threads[number], NULL);
		nwrong += starts[number].rank.nwrong;
	}
	return nwrong == 0;
}

int main(int argc, char **argv)
{
	struct ranks job = { .most = (size_t)1 << 30 };
	int at = 2;

	job.n = argc > 1 ? atoi(argv[1]) : 0;
	if (argc > 3 && !strcmp(argv[2], "--most")) {
		job.most = strtoull(argv[3], NULL, 10);
		at = 4;
	}
	for (int i = at; i < argc; i++)
		if (!is_kind(argv[i]))
			job.n = 0;
	if (job.n < 1 || job.n > RANKS_MOST || job.most < 8) {
		(void)fprintf(stderr,
			      "usage: %s RANKS [--most BYTES] [plain|registered|pinned]...\n"
			      "1 to %d ranks, threads of this process\n",
			      argv[0], RANKS_MOST);
		return 2;
	}
	cuda_open();
	CUDA(GetDeviceCount(&job.ndevices));
	if (pthread_barrier_init(&job.all, NULL, (unsigned)job.n) != 0)
		give_up("no barrier\n");
	library.open(&job);
	return run_all(&job, argv + at, argc > at ? argc - at : 0) ? 0 : 1;
}
