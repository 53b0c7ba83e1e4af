/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams: communicate while you compute.
 *
 * A call on a stream returns at once and is done later, in the order of the
 * stream, by a thread of the library. Its buffers belong to the library until
 * then; an event tells when.
 *
 * Run:    tutti run -n 4 ./03_streams
 */
#include <stdio.h>
#include <stdlib.h>

#include <tutti/tutti.h>

#define COUNT 100000
#define PARTS 8

static void check(tutti_status status, const char *what)
{
	if (status != TUTTI_OK) {
		fprintf(stderr, "%s: %s\n", what, tutti_last_error(NULL));
		exit(1);
	}
}

/* Stands for the work that makes one part of the data. */
static void compute(double *part, int rank, int which)
{
	for (int i = 0; i < COUNT; i++)
		part[i] = (double)rank + which + i % 10;
}

static int count_wrong(const double *part, int nranks, int which)
{
	int wrong = 0;

	/* The average over ranks r of (r + which + i % 10). */
	for (int i = 0; i < COUNT; i++)
		wrong += part[i] != (nranks - 1) / 2.0 + which + i % 10;
	return wrong;
}

int main(void)
{
	double *data = malloc(sizeof(double) * COUNT * PARTS);
	tutti_event_t done[PARTS];
	int rank, nranks, wrong = 0;
	tutti_stream_t stream;
	tutti_comm_t comm;

	if (!data)
		return 1;
	check(tutti_comm_init_env(&comm, NULL), "tutti_comm_init_env");
	check(tutti_comm_rank(comm, &rank), "tutti_comm_rank");
	check(tutti_comm_count(comm, &nranks), "tutti_comm_count");
	check(tutti_stream_create(&stream), "tutti_stream_create");

	/* While one part travels, the next one is computed. */
	for (int i = 0; i < PARTS; i++) {
		double *part = data + (size_t)i * COUNT;

		compute(part, rank, i);
		check(tutti_all_reduce(part, part, COUNT, TUTTI_FLOAT64, TUTTI_AVG, comm, stream),
		      "tutti_all_reduce");
		/* The event happens when the stream gets to this point. */
		check(tutti_event_create(&done[i]), "tutti_event_create");
		check(tutti_event_record(done[i], stream), "tutti_event_record");
	}

	/* Each part can be used as soon as its own event has happened. */
	for (int i = 0; i < PARTS; i++) {
		check(tutti_event_synchronize(done[i]), "tutti_event_synchronize");
		wrong += count_wrong(data + (size_t)i * COUNT, nranks, i);
		check(tutti_event_destroy(done[i]), "tutti_event_destroy");
	}

	/* Errors of queued calls are reported here. */
	check(tutti_stream_synchronize(stream), "tutti_stream_synchronize");
	check(tutti_stream_destroy(stream), "tutti_stream_destroy");
	printf("rank %d of %d: %d averages, %d wrong\n", rank, nranks, COUNT * PARTS, wrong);

	check(tutti_comm_destroy(comm), "tutti_comm_destroy");
	free(data);
	return wrong != 0;
}
