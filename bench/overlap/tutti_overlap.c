/* SPDX-License-Identifier: BSD-3-Clause */
/* all_reduce of Tutti on a stream, measured as in overlap.h. THIS BYTES SECONDS, once per rank */
#include <tutti/tutti.h>

#include "overlap.h"

static tutti_stream_t stream;

static void must(struct overlap *o, tutti_status status)
{
	if (status == TUTTI_OK)
		return;
	fprintf(stderr, "rank %d: %s\n", o->rank, tutti_last_error(NULL));
	exit(1);
}

static void start(struct overlap *o)
{
	must(o, tutti_all_reduce(o->send, o->recv, o->bytes / sizeof(float), TUTTI_FLOAT32,
				 TUTTI_SUM, (tutti_comm_t)o->library, stream));
}

static void wait(struct overlap *o)
{
	must(o, tutti_stream_synchronize(stream));
}

static void barrier(struct overlap *o)
{
	must(o, tutti_barrier((tutti_comm_t)o->library, NULL));
}

static void maximum(struct overlap *o, double values[2])
{
	must(o, tutti_all_reduce(values, values, 2, TUTTI_FLOAT64, TUTTI_MAX,
				 (tutti_comm_t)o->library, NULL));
}

int main(int argc, char **argv)
{
	struct overlap o = { .start = start, .wait = wait, .barrier = barrier, .maximum = maximum };
	tutti_comm_t comm;
	int bad;

	must(&o, tutti_comm_init_env(&comm, NULL));
	o.library = comm;
	must(&o, tutti_comm_rank(comm, &o.rank));
	must(&o, tutti_comm_count(comm, &o.nranks));
	must(&o, tutti_stream_create(&stream));
	if (!overlap_prepare(&o, argc, argv))
		return 1;
	bad = overlap_run(&o);
	must(&o, tutti_stream_destroy(stream));
	must(&o, tutti_comm_destroy(comm));
	return bad;
}
