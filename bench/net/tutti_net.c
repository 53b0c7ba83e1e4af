/* SPDX-License-Identifier: BSD-3-Clause */
/* Tutti between nodes, measured as in measure.h; once per rank, with TUTTI_RANK and so on:
 * THIS OPERATION BYTES SECONDS|once */
#include <tutti/tutti.h>

#include "measure.h"

#define MOST_RANKS 64

static tutti_comm_t comm_of(struct measure *m)
{
	return (tutti_comm_t)m->library;
}

static void must(struct measure *m, tutti_status status)
{
	if (status == TUTTI_OK)
		return;
	fprintf(stderr, "rank %d: %s\n", m->rank, tutti_last_error(m->library));
	exit(1);
}

static void send_one_way(struct measure *m, int from, int to)
{
	if (m->rank == from)
		must(m, tutti_send(m->send, m->count, TUTTI_FLOAT32, to, comm_of(m), NULL));
	if (m->rank == to)
		must(m, tutti_recv(m->recv, m->count, TUTTI_FLOAT32, from, comm_of(m), NULL));
}

/* From rank 0, or from all of the first half, to all of the second. */
static void hand_over(struct measure *m)
{
	const int half = m->nranks / 2;
	tutti_side from = { .n = m->operation == HANDOFF ? 1 : half },
		   to = { .n = m->nranks - half };
	int ranks[MOST_RANKS];

	for (int rank = 0; rank < m->nranks; rank++)
		ranks[rank] = rank;
	from.ranks = ranks;
	to.ranks = ranks + half;
	must(m, tutti_handoff(m->send, m->recv, m->count, TUTTI_FLOAT32, &from, &to, comm_of(m),
			      NULL));
}

static void call(struct measure *m)
{
	switch (m->operation) {
	case SEND_RECV:
		send_one_way(m, 0, m->nranks - 1);
		break;
	case PING_PONG:
		send_one_way(m, 0, m->nranks - 1);
		send_one_way(m, m->nranks - 1, 0);
		break;
	case BROADCAST:
		must(m, tutti_broadcast(m->send, m->rank == 0 ? m->send : m->recv, m->count,
					TUTTI_FLOAT32, 0, comm_of(m), NULL));
		break;
	case ALL_REDUCE:
		must(m, tutti_all_reduce(m->send, m->recv, m->count, TUTTI_FLOAT32, TUTTI_SUM,
					 comm_of(m), NULL));
		break;
	case ALL_GATHER:
		must(m,
		     tutti_all_gather(m->send, m->recv, m->count, TUTTI_FLOAT32, comm_of(m), NULL));
		break;
	case REDUCE_SCATTER:
		must(m, tutti_reduce_scatter(m->send, m->recv, m->count, TUTTI_FLOAT32, TUTTI_SUM,
					     comm_of(m), NULL));
		break;
	case ALL_TO_ALL:
		must(m,
		     tutti_all_to_all(m->send, m->recv, m->count, TUTTI_FLOAT32, comm_of(m), NULL));
		break;
	case HANDOFF:
	case HANDOFF_COPIES:
		hand_over(m);
		break;
	case OPERATIONS:
		break;
	}
}

static void barrier(struct measure *m)
{
	must(m, tutti_barrier(comm_of(m), NULL));
}

static void maximum(struct measure *m, double values[2])
{
	must(m, tutti_all_reduce(values, values, 2, TUTTI_FLOAT64, TUTTI_MAX, comm_of(m), NULL));
}

int main(int argc, char **argv)
{
	struct measure m = { .call = call, .barrier = barrier, .maximum = maximum };
	tutti_comm_t comm;
	int bad;

	if (argc != 4)
		return 2;
	must(&m, tutti_comm_init_env(&comm, NULL));
	m.library = comm;
	must(&m, tutti_comm_rank(comm, &m.rank));
	must(&m, tutti_comm_count(comm, &m.nranks));
	if (m.nranks > MOST_RANKS || !measure_prepare(&m, argv))
		return 1;
	bad = strcmp(argv[3], "once") == 0 ? measure_once(&m) : measure_run(&m);
	must(&m, tutti_comm_destroy(comm));
	return bad;
}
