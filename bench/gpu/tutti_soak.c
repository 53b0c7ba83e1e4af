/* SPDX-License-Identifier: BSD-3-Clause */
/* Random calls among ranks that are threads of this process and have GPUs: all collectives, in memory of
 * the GPU, registered or not, and pinned, on two streams, in place, and by graphs that are launched
 * several times. Every element of every result is compared, and what lies around it.
 *
 *     tutti_soak SECONDS RANKS [SEED] [--small] */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime.h"
#include "soak.h"
#include "tutti/inspect.h"

#define CHECK(call) check((call), #call, __LINE__)
/* Calls between two looks at the clock, at which all ranks meet. */
#define ROUND       16
#define GUARD_BYTE  0x5a
#define AREA        (SOAK_BYTES + 2 * SOAK_GUARD)

static void check(tutti_status status, const char *call, int line)
{
	if (status != TUTTI_OK)
		give_up("%s:%d: %s: %s: %s\n", __FILE__, line, call, tutti_status_string(status),
			tutti_last_error(NULL));
}

struct job {
	int n, ndevices;
	bool is_small;
	uint64_t seed, ncalls; /* ncalls: that rank 0 has made */
	double until;
	bool is_over;
	pthread_barrier_t all;
	tutti_unique_id id;
};

struct rank {
	struct job *job;
	int number;
	tutti_comm_t comm;
	cudaStream_t cuda[2];
	tutti_stream_t stream[2];
	char *memory[SOAK_KINDS][2]; /* AREA each: of inputs, of outputs */
	tutti_reg_t regs[2];
	char *staging, *got; /* pinned, AREA */
	uint64_t random;     /* of this rank alone */
};

/* -- One call --------------------------------------------------------------------------------- */

/* Where a call has its input and output, in memory[0] alone if it is in place. */
struct buffers {
	struct soak_place place;
	char *in, *out, *out_area;
};

static struct buffers buffers_of(struct rank *rank, const struct soak_call *call)
{
	char *const *memory = rank->memory[call->buffers];
	struct buffers buffers = { .place = soak_place(call, rank->number) };

	buffers.out_area = memory[call->in_place ? 0 : 1];
	buffers.in = memory[0] + SOAK_GUARD + buffers.place.in_at;
	buffers.out = buffers.out_area + SOAK_GUARD + buffers.place.out_at;
	return buffers;
}

static void lay_out(struct rank *rank, const struct soak_call *call, int time,
		    const struct buffers *buffers)
{
	const cudaStream_t stream = rank->cuda[call->stream];
	const size_t nbytes = buffers->place.out_at + buffers->place.out_bytes + 2 * SOAK_GUARD;

	CUDA(StreamSynchronize(stream)); /* the staging is used again */
	CUDA(MemsetAsync(buffers->out_area, GUARD_BYTE, nbytes, stream));
	soak_fill(call, rank->number, time, rank->staging);
	if (buffers->place.in_bytes > 0)
		CUDA(MemcpyAsync(buffers->in, rank->staging, buffers->place.in_bytes, CUDA_ANYWHERE,
				 stream));
}

static bool is_guard(const char *at)
{
	for (size_t i = 0; i < SOAK_GUARD; i++)
		if (at[i] != GUARD_BYTE)
			return false;
	return true;
}

static void compare(struct rank *rank, const struct soak_call *call, int time,
		    const struct buffers *buffers)
{
	const struct soak_place *place = &buffers->place;
	const size_t n = place->out_bytes / tutti_type_size(call->type);
	const cudaStream_t stream = rank->cuda[call->stream];
	size_t wrong;

	CUDA(MemcpyAsync(rank->got, buffers->out - SOAK_GUARD, place->out_bytes + 2 * SOAK_GUARD,
			 CUDA_ANYWHERE, stream));
	CUDA(StreamSynchronize(stream));
	wrong = soak_first_wrong(call, rank->number, time, rank->got + SOAK_GUARD);
	/* In place there is more of the input around the output of a reduce_scatter. */
	if (wrong == n && (call->in_place || (is_guard(rank->got) &&
					      is_guard(rank->got + SOAK_GUARD + place->out_bytes))))
		return;
	give_up("seed %llu, call %llu, rank %d of %d, time %d: %s of %zu %s, %s, root %d, buffers "
		"%d, in place %d, stream %d, graph %d: %s %zu is wrong\n",
		(unsigned long long)rank->job->seed, (unsigned long long)call->number, rank->number,
		call->n, time, tutti_collective_name(call->coll), call->count,
		tutti_type_name(call->type), tutti_op_name(call->op), call->root,
		(int)call->buffers, call->in_place, call->stream, call->ntimes > 1,
		wrong == n ? "what lies around the output of elements" : "element", wrong);
}

static cudaGraphExec_t capture(struct rank *rank, const struct soak_call *call,
			       const struct buffers *buffers)
{
	const cudaStream_t stream = rank->cuda[call->stream];
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	CUDA(StreamBeginCapture(stream, CUDA_CAPTURE_THREAD_LOCAL));
	CHECK(soak_submit(call, rank->number, buffers->in, buffers->out, rank->comm,
			  rank->stream[call->stream]));
	CUDA(StreamEndCapture(stream, &graph));
	CUDA(GraphInstantiate(&exec, graph, 0));
	CUDA(GraphDestroy(graph));
	return exec;
}

static void make_call(struct rank *rank, uint64_t number)
{
	struct soak_call call;
	struct buffers buffers;
	cudaGraphExec_t exec = NULL;

	soak_draw(&call, rank->job->n, number, rank->job->seed, rank->job->is_small);
	buffers = buffers_of(rank, &call);
	if (soak_random(&rank->random) % 16 == 0)
		usleep((useconds_t)(soak_random(&rank->random) % 200));
	if (call.ntimes > 1)
		exec = capture(rank, &call, &buffers);
	for (int time = 0; time < call.ntimes; time++) {
		lay_out(rank, &call, time, &buffers);
		if (exec)
			CUDA(GraphLaunch(exec, rank->cuda[call.stream]));
		else
			CHECK(soak_submit(&call, rank->number, buffers.in, buffers.out, rank->comm,
					  rank->stream[call.stream]));
		compare(rank, &call, time, &buffers);
	}
	if (exec)
		CUDA(GraphExecDestroy(exec));
}

/* -- Ranks -------------------------------------------------------------------------------------- */

static void allocate(struct rank *rank)
{
	void *memory;

	for (int i = 0; i < 2; i++) {
		CUDA(Malloc(&memory, AREA));
		rank->memory[SOAK_PLAIN][i] = memory;
		CUDA(Malloc(&memory, AREA));
		rank->memory[SOAK_REGISTERED][i] = memory;
		CUDA(MallocHost(&memory, AREA));
		rank->memory[SOAK_PINNED][i] = memory;
	}
	CUDA(MallocHost(&memory, AREA));
	rank->staging = memory;
	CUDA(MallocHost(&memory, AREA));
	rank->got = memory;
}

static void begin(struct rank *rank)
{
	tutti_stream_ops ops = TUTTI_STREAM_OPS_INIT;
	tutti_config config = TUTTI_CONFIG_INIT;

	config.device = rank->number % rank->job->ndevices;
	CUDA(SetDevice(config.device));
	allocate(rank);
	CHECK(tutti_comm_init_rank_config(&rank->comm, rank->job->n, rank->job->id, rank->number,
					  &config));
	ops.cuda = 1;
	for (int i = 0; i < 2; i++) {
		CUDA(StreamCreateWithFlags(&rank->cuda[i], CUDA_NON_BLOCKING));
		CHECK(tutti_stream_wrap(&rank->stream[i], &ops, rank->cuda[i]));
		CHECK(tutti_register(rank->comm, rank->memory[SOAK_REGISTERED][i], AREA,
				     &rank->regs[i]));
	}
}

static void end(struct rank *rank)
{
	for (int i = 0; i < 2; i++) {
		CHECK(tutti_deregister(rank->comm, rank->regs[i]));
		CHECK(tutti_stream_destroy(rank->stream[i]));
		CUDA(StreamDestroy(rank->cuda[i]));
	}
	CHECK(tutti_comm_destroy(rank->comm));
	for (int i = 0; i < 2; i++) {
		CUDA(Free(rank->memory[SOAK_PLAIN][i]));
		CUDA(Free(rank->memory[SOAK_REGISTERED][i]));
		CUDA(FreeHost(rank->memory[SOAK_PINNED][i]));
	}
	CUDA(FreeHost(rank->staging));
	CUDA(FreeHost(rank->got));
}

static void *run(void *arg)
{
	struct rank *rank = arg;
	struct job *job = rank->job;
	uint64_t number = 0;

	begin(rank);
	while (!job->is_over) {
		for (int i = 0; i < ROUND; i++)
			make_call(rank, number++);
		(void)pthread_barrier_wait(&job->all);
		if (rank->number == 0) {
			job->is_over = now_us() > job->until;
			job->ncalls = number;
		}
		(void)pthread_barrier_wait(&job->all);
	}
	end(rank);
	return NULL;
}

int main(int argc, char **argv)
{
	static struct rank ranks[SOAK_RANKS];
	static struct job job;
	pthread_t threads[SOAK_RANKS];
	const double seconds = argc > 2 ? strtod(argv[1], NULL) : 0;

	job.is_small = argc > 3 && !strcmp(argv[argc - 1], "--small");
	job.n = argc > 2 ? atoi(argv[2]) : 0;
	job.seed = argc > 3 + job.is_small ? strtoull(argv[3], NULL, 0) : 1;
	if (job.n < 1 || job.n > SOAK_RANKS) {
		(void)fprintf(stderr, "usage: %s SECONDS RANKS [SEED] [--small]\n1 to %d ranks\n",
			      argv[0], SOAK_RANKS);
		return 2;
	}
	cuda_open();
	CUDA(GetDeviceCount(&job.ndevices));
	job.until = now_us() + seconds * 1e6;
	CHECK(tutti_get_unique_id(&job.id));
	if (pthread_barrier_init(&job.all, NULL, (unsigned)job.n) != 0)
		give_up("no barrier\n");
	for (int number = 0; number < job.n; number++) {
		ranks[number] = (struct rank){ .job = &job,
					       .number = number,
					       .random = job.seed + (uint64_t)number };
		if (pthread_create(&threads[number], NULL, run, &ranks[number]) != 0)
			give_up("a thread could not be started\n");
	}
	for (int number = 0; number < job.n; number++)
		(void)pthread_join(threads[number], NULL);
	report("soak", "calls, all results of which were compared", (double)job.ncalls, "-");
	report("soak", "wrong ones", 0, "-");
	return 0;
}
