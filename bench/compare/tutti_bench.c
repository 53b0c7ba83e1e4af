/* SPDX-License-Identifier: BSD-3-Clause */
/* all_reduce of Tutti, measured as in batches.h. tutti run -n N THIS BYTES SECONDS */
#include <tutti/tutti.h>

#include "batches.h"

static void must(struct batches *b, tutti_status status)
{
	if (status == TUTTI_OK)
		return;
	fprintf(stderr, "rank %d: %s\n", b->rank, tutti_last_error(NULL));
	exit(1);
}

static void call(struct batches *b)
{
	must(b, tutti_all_reduce(b->send, b->recv, b->bytes / sizeof(float), TUTTI_FLOAT32,
				 TUTTI_SUM, (tutti_comm_t)b->library, NULL));
}

static void barrier(struct batches *b)
{
	must(b, tutti_barrier((tutti_comm_t)b->library, NULL));
}

static void maximum(struct batches *b, double values[2])
{
	must(b, tutti_all_reduce(values, values, 2, TUTTI_FLOAT64, TUTTI_MAX,
				 (tutti_comm_t)b->library, NULL));
}

int main(int argc, char **argv)
{
	struct batches b = { .call = call, .barrier = barrier, .maximum = maximum };
	tutti_comm_t comm;
	int bad;

	if (argc != 3)
		return 2;
	must(&b, tutti_comm_init_env(&comm, NULL));
	b.library = comm;
	must(&b, tutti_comm_rank(comm, &b.rank));
	must(&b, tutti_comm_count(comm, &b.nranks));
	if (!batches_prepare(&b, argv))
		return 1;
	bad = batches_run(&b);
	must(&b, tutti_comm_destroy(comm));
	return bad;
}
