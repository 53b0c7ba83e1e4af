/* SPDX-License-Identifier: BSD-3-Clause */
/* Tutti, measured as in batches.h, with buffers of malloc or of tutti_mem_alloc():
 * tutti run -n N THIS OPERATION MODE,... SECONDS BYTES,... plain|registered */
#include <tutti/tutti.h>

#include "batches.h"

static void must(struct batches *b, tutti_status status)
{
	if (status == TUTTI_OK)
		return;
	fprintf(stderr, "rank %d: %s\n", b->rank, tutti_last_error(NULL));
	exit(1);
}

static void ping_pong(struct batches *b, tutti_comm_t comm)
{
	const int receives_first = b->rank % 2;

	for (int i = 0; b->peer >= 0 && i < 2; i++)
		must(b, i == receives_first
				? tutti_send(b->send, b->sent, TUTTI_FLOAT32, b->peer, comm, NULL)
				: tutti_recv(b->recv, b->received, TUTTI_FLOAT32, b->peer, comm,
					     NULL));
}

static void barrier(struct batches *b)
{
	must(b, tutti_barrier((tutti_comm_t)b->library, NULL));
}

static void call(struct batches *b)
{
	tutti_comm_t comm = (tutti_comm_t)b->library;

	switch (b->operation) {
	case ALL_REDUCE:
		must(b, tutti_all_reduce(b->send, b->recv, b->block, TUTTI_FLOAT32, TUTTI_SUM, comm,
					 NULL));
		break;
	case BROADCAST:
		must(b, tutti_broadcast(b->send, b->recv, b->block, TUTTI_FLOAT32, 0, comm, NULL));
		break;
	case ALL_GATHER:
		must(b, tutti_all_gather(b->send, b->recv, b->block, TUTTI_FLOAT32, comm, NULL));
		break;
	case REDUCE_SCATTER:
		must(b, tutti_reduce_scatter(b->send, b->recv, b->block, TUTTI_FLOAT32, TUTTI_SUM,
					     comm, NULL));
		break;
	case ALL_TO_ALL:
		must(b, tutti_all_to_all(b->send, b->recv, b->block, TUTTI_FLOAT32, comm, NULL));
		break;
	case SEND_RECV:
		ping_pong(b, comm);
		break;
	case BARRIER:
		barrier(b);
		break;
	case OPERATIONS:
		break;
	}
}

static void maximum(struct batches *b, double values[2])
{
	must(b, tutti_all_reduce(values, values, 2, TUTTI_FLOAT64, TUTTI_MAX,
				 (tutti_comm_t)b->library, NULL));
}

static float *allocate(struct batches *b, size_t bytes)
{
	void *memory;

	must(b, tutti_mem_alloc(&memory, bytes, (tutti_comm_t)b->library));
	return memory;
}

static void release(struct batches *b, float *memory)
{
	must(b, tutti_mem_free(memory, (tutti_comm_t)b->library));
}

int main(int argc, char **argv)
{
	struct batches b = { .call = call, .barrier = barrier, .maximum = maximum };
	tutti_comm_t comm;
	int bad;

	if (argc != 6)
		return 2;
	if (strcmp(argv[5], "registered") == 0) {
		b.allocate = allocate;
		b.release = release;
	}
	must(&b, tutti_comm_init_env(&comm, NULL));
	b.library = comm;
	must(&b, tutti_comm_rank(comm, &b.rank));
	must(&b, tutti_comm_count(comm, &b.nranks));
	bad = batches_run(&b, argv);
	must(&b, tutti_comm_destroy(comm));
	return bad;
}
