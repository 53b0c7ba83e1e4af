/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives of ranks with devices on several hosts, whose data is checked.
 *
 *     net_devices calls       each of them with few and many elements, several times
 *     net_devices graph N     a captured graph of all of them is launched N times, where all have devices
 *     net_devices forever     sums, until a call fails, which ends the program with 1
 *
 * One rank of a job, told by the environment; TUTTI_CUDA_DEVICE is the number of its device, and a rank
 * where it is not set has none. Memory of devices is guarded: the library gets addresses that the host
 * cannot touch. Every element of every buffer is compared. Prints "begin" after the first round of
 * "forever", and "right" at the end. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/ranks/gpu.h"
#include "tutti/tutti.h"

enum kind { SUM, GATHER, RING, SWAP, KINDS };
static const char *const names[KINDS] = { "all_reduce", "all_gather", "send and recv",
					  "all_to_all" };

/* Behind what a call writes. */
#define REST   16
#define UNUSED 0xeeeeeeeeu

struct job {
	tutti_comm_t comm;
	int rank, n, device;
	size_t count;
	uint32_t round;
	struct gpu_buffer in, out[KINDS]; /* n * count elements, and of each out REST more */
	struct gpu_stream stream;         /* of a rank with a device */
};

static bool good(const struct job *job, const char *what, tutti_status status)
{
	if (status)
		fprintf(stderr, "rank %d, %s, round %u: %s: %s\n", job->rank, what, job->round,
			tutti_status_name(status), tutti_last_error(job->comm));
	return status == TUTTI_OK;
}

/* -- Calls ----------------------------------------------------------------------------------- */

static tutti_stream_t stream_of(const struct job *job)
{
	return job->device < 0 ? NULL : job->stream.tutti;
}

static tutti_status ring(const struct job *job, void *out)
{
	const int next = (job->rank + 1) % job->n, before = (job->rank + job->n - 1) % job->n;
	tutti_status status = tutti_group_start(), end;

	if (status)
		return status;
	status = tutti_send(job->in.memory, job->count, TUTTI_UINT32, next, job->comm,
			    stream_of(job));
	if (status == TUTTI_OK)
		status = tutti_recv(out, job->count, TUTTI_UINT32, before, job->comm,
				    stream_of(job));
	end = tutti_group_end();
	return status ? status : end;
}

static tutti_status call(const struct job *job, enum kind kind)
{
	void *const out = job->out[kind].memory;

	switch (kind) {
	case SUM:
		return tutti_all_reduce(job->in.memory, out, job->count, TUTTI_UINT32, TUTTI_SUM,
					job->comm, stream_of(job));
	case GATHER:
		return tutti_all_gather(job->in.memory, out, job->count, TUTTI_UINT32, job->comm,
					stream_of(job));
	case RING:
		return ring(job, out);
	case SWAP:
		return tutti_all_to_all(job->in.memory, out, job->count, TUTTI_UINT32, job->comm,
					stream_of(job));
	case KINDS:
		break;
	}
	return TUTTI_EINVAL;
}

static bool call_all(const struct job *job)
{
	for (enum kind kind = 0; kind < KINDS; kind++)
		if (!good(job, names[kind], call(job, kind)))
			return false;
	return true;
}

/* -- Data ------------------------------------------------------------------------------------ */

static uint32_t *view(const struct gpu_buffer *buffer)
{
	return (uint32_t *)(void *)buffer->view;
}

static uint32_t value(const struct job *job, int rank, size_t i)
{
	return (uint32_t)i * 2654435761u + job->round * 40503u + (uint32_t)rank * 97u;
}

static void fill(const struct job *job)
{
	const size_t all = (size_t)job->n * job->count;

	for (size_t i = 0; i < all; i++)
		view(&job->in)[i] = value(job, job->rank, i);
	for (enum kind kind = 0; kind < KINDS; kind++)
		for (size_t i = 0; i < all + REST; i++)
			view(&job->out[kind])[i] = UNUSED;
}

static uint32_t expected(const struct job *job, enum kind kind, size_t i)
{
	const size_t count = job->count;
	const int from = (int)(i / count);
	uint32_t sum = 0;

	if (i >= ((kind == SUM || kind == RING) ? 1 : (size_t)job->n) * count)
		return UNUSED;
	if (kind == RING)
		return value(job, (job->rank + job->n - 1) % job->n, i);
	if (kind == GATHER)
		return value(job, from, i % count);
	if (kind == SWAP)
		return value(job, from, (size_t)job->rank * count + i % count);
	for (int rank = 0; rank < job->n; rank++)
		sum += value(job, rank, i);
	return sum;
}

static bool is_right(const struct job *job, enum kind kind)
{
	const uint32_t *got = view(&job->out[kind]);

	for (size_t i = 0; i < (size_t)job->n * job->count + REST; i++)
		if (got[i] != expected(job, kind, i)) {
			fprintf(stderr,
				"rank %d, %s of %zu elements, round %u: element %zu is %#x, "
				"not %#x\n",
				job->rank, names[kind], job->count, job->round, i, got[i],
				expected(job, kind, i));
			return false;
		}
	return true;
}

/* What was launched is done, and was right. */
static bool finish(const struct job *job, bool only_sum)
{
	tutti_status status = TUTTI_OK;
	tutti_status asked;

	if (job->device >= 0)
		gpu_stream_wait(&job->stream);
	asked = tutti_comm_get_async_error(job->comm, &status);
	if (!good(job, "waiting", asked ? asked : status))
		return false;
	for (enum kind kind = 0; kind < KINDS; kind++)
		if ((kind == SUM || !only_sum) && !is_right(job, kind))
			return false;
	return true;
}

/* -- What is asked for ------------------------------------------------------------------------ */

static void open_buffers(struct job *job, size_t count)
{
	const size_t all = (size_t)job->n * count;

	job->count = count;
	gpu_alloc(&job->in, job->device, all * sizeof(uint32_t));
	for (enum kind kind = 0; kind < KINDS; kind++)
		gpu_alloc(&job->out[kind], job->device, (all + REST) * sizeof(uint32_t));
	if (job->device >= 0)
		gpu_stream_open(&job->stream, &job->in);
}

static bool close_buffers(struct job *job)
{
	const bool is_good =
		job->device < 0 || good(job, "the stream", gpu_stream_close(&job->stream));

	gpu_free(&job->in);
	for (enum kind kind = 0; kind < KINDS; kind++)
		gpu_free(&job->out[kind]);
	return is_good;
}

static bool run_calls(struct job *job)
{
	static const size_t counts[] = { 1, 1000, 100000 };

	for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
		open_buffers(job, counts[c]);
		for (job->round = 0; job->round < 3; job->round++) {
			fill(job);
			if (!call_all(job) || !finish(job, false))
				return false;
		}
		if (!close_buffers(job))
			return false;
	}
	return true;
}

static bool run_graph(struct job *job, uint32_t nlaunches)
{
	void *graph;

	open_buffers(job, 3000);
	gpu_capture_begin(&job->stream);
	if (!call_all(job))
		return false;
	graph = gpu_capture_end(&job->stream);
	for (job->round = 0; job->round < nlaunches; job->round++) {
		fill(job);
		gpu_graph_launch(graph, &job->stream);
		if (!finish(job, false))
			return false;
	}
	gpu_graph_free(graph, &job->stream);
	return close_buffers(job);
}

static bool run_forever(struct job *job)
{
	open_buffers(job, 100000);
	for (;; job->round++) {
		fill(job);
		if (!good(job, names[SUM], call(job, SUM)) || !finish(job, true))
			return false;
		if (job->round == 0) {
			puts("begin");
			fflush(stdout);
		}
	}
}

int main(int argc, char **argv)
{
	const char *const what = argc > 1 ? argv[1] : "", *device = getenv("TUTTI_CUDA_DEVICE");
	struct job job = { .device = device ? atoi(device) : -1 };
	bool right;

	if (tutti_comm_init_env(&job.comm, NULL) || tutti_comm_rank(job.comm, &job.rank) ||
	    tutti_comm_count(job.comm, &job.n)) {
		fprintf(stderr, "%s\n", tutti_last_error(NULL));
		return 1;
	}
	if (!strcmp(what, "calls"))
		right = run_calls(&job);
	else if (!strcmp(what, "graph") && argc == 3)
		right = run_graph(&job, (uint32_t)atoi(argv[2]));
	else
		right = !strcmp(what, "forever") && run_forever(&job);
	if (right && tutti_comm_finalize(job.comm) != TUTTI_OK)
		right = good(&job, "finalize", TUTTI_ESYS);
	if (tutti_comm_destroy(job.comm) != TUTTI_OK)
		right = false;
	if (right)
		puts("right");
	return right ? 0 : 1;
}
