/* SPDX-License-Identifier: BSD-3-Clause */
/* From one group of ranks to another. The first half of the ranks are a stage of a pipeline,
 * which all hold the same activations. The others get them, first whole, then a part each.
 *
 * Run:    tutti run -n 6 ./06_handoff
 */
#include <stdio.h>
#include <stdlib.h>

#include <tutti/tutti.h>

#define COUNT 100003

static void check(tutti_status status, const char *what)
{
	if (status != TUTTI_OK) {
		fprintf(stderr, "%s: %s\n", what, tutti_last_error(NULL));
		exit(1);
	}
}

static int count_wrong(const float *values, size_t first, size_t count)
{
	int wrong = 0;

	for (size_t i = 0; i < count; i++)
		wrong += values[i] != (float)(first + i);
	return wrong;
}

int main(void)
{
	static float send[COUNT], recv[COUNT];
	int rank, nranks, wrong = 0;
	tutti_comm_t comm;

	check(tutti_comm_init_env(&comm, NULL), "tutti_comm_init_env");
	check(tutti_comm_rank(comm, &rank), "tutti_comm_rank");
	check(tutti_comm_count(comm, &nranks), "tutti_comm_count");

	/* All ranks name the same sides. A single rank is on both. */
	const int half = (nranks + 1) / 2, later = nranks > 1 ? nranks - half : 1;
	int *ranks = malloc((size_t)(half + later) * sizeof(*ranks));

	if (!ranks)
		return 1;
	for (int i = 0; i < half; i++)
		ranks[i] = i;
	for (int i = 0; i < later; i++)
		ranks[half + i] = nranks - later + i;
	const tutti_side from = { ranks, half, 0 };
	tutti_side to = { ranks + half, later, 0 };

	for (size_t i = 0; i < COUNT && rank < half; i++)
		send[i] = (float)i;
	check(tutti_handoff(send, recv, COUNT, TUTTI_FLOAT32, &from, &to, comm, NULL),
	      "tutti_handoff");
	if (rank >= nranks - later)
		wrong += count_wrong(recv, 0, COUNT);

	/* Now each of them gets only its own part. */
	to.sharded = 1;
	check(tutti_handoff(send, recv, COUNT, TUTTI_FLOAT32, &from, &to, comm, NULL),
	      "tutti_handoff");
	if (rank >= nranks - later) {
		size_t first, count;

		tutti_part(COUNT, later, rank - (nranks - later), &first, &count);
		wrong += count_wrong(recv, first, count);
		printf("rank %d of %d: elements %zu to %zu, %d wrong\n", rank, nranks, first,
		       first + count - 1, wrong);
	}
	free(ranks);
	check(tutti_comm_destroy(comm), "tutti_comm_destroy");
	return wrong != 0;
}
