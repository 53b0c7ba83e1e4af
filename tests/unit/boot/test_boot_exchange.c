/* SPDX-License-Identifier: BSD-3-Clause */
/* Both kinds of bootstrap must do the same. */
#include "ranks.h"

#include "support/sanitizer.h"

struct job {
	tutti_unique_id ids[4];
	int nids;
	struct tti_boot **local; /* NULL: sockets */
};

static tutti_status join(struct rank *rank)
{
	const struct job *job = rank->arg;

	if (job->local) {
		rank->boot = job->local[rank->rank];
		return TUTTI_OK;
	}
	return rank_connect(rank, job->ids, job->nids, 20000, NULL);
}

static uint8_t byte_of(int rank, size_t i, int round)
{
	return (uint8_t)((size_t)rank * 31 + i * 7 + (size_t)round * 13 + 1);
}

static tutti_status gather(struct rank *rank, size_t nbytes, int round)
{
	const size_t n = (size_t)rank->nranks;
	uint8_t *blobs = calloc(n, nbytes + 1);
	tutti_status status;

	for (size_t i = 0; i < nbytes; i++)
		blobs[(size_t)rank->rank * nbytes + i] = byte_of(rank->rank, i, round);
	status = tti_boot_all_gather(rank->boot, blobs, nbytes);
	for (size_t r = 0; r < n && status == TUTTI_OK; r++)
		for (size_t i = 0; i < nbytes && status == TUTTI_OK; i++)
			if (blobs[r * nbytes + i] != byte_of((int)r, i, round))
				status = tti_fail(TUTTI_EINTERNAL, "blob %zu, byte %zu", r, i);
	free(blobs);
	return status;
}

static tutti_status broadcast(struct rank *rank, int root, size_t nbytes)
{
	uint8_t *data = calloc(nbytes + 1, 1);
	tutti_status status;

	for (size_t i = 0; i < nbytes && rank->rank == root; i++)
		data[i] = byte_of(root, i, 3);
	status = tti_boot_broadcast(rank->boot, root, data, nbytes);
	for (size_t i = 0; i < nbytes && status == TUTTI_OK; i++)
		if (data[i] != byte_of(root, i, 3))
			status = tti_fail(TUTTI_EINTERNAL, "byte %zu of rank %d's", i, root);
	if (status == TUTTI_OK && data[nbytes])
		status = tti_fail(TUTTI_EINTERNAL, "more than %zu bytes", nbytes);
	free(data);
	return status;
}

/* From every rank, and a size that takes several pieces; nobody waits in between. */
static tutti_status broadcasts(struct rank *rank)
{
	static const size_t sizes[] = { 0, 1, 16384, 16385, 100001 };
	const int step = rank->nranks <= 9 ? 1 : rank->nranks / 3;

	for (int root = 0; root < rank->nranks; root += step)
		TTI_TRY(broadcast(rank, root, sizes[root % 5]));
	return broadcast(rank, rank->nranks - 1, 100001);
}

static tutti_status exchange(struct rank *rank)
{
	static const size_t sizes[] = { 0, 1, 15, 1024, 70000 };
	tutti_status status = join(rank);

	if (status == TUTTI_OK)
		assert_int_equal(tti_boot_rank(rank->boot), rank->rank);
	for (int i = 0; i < 5 && status == TUTTI_OK; i++)
		if (rank->nranks <= 9 || sizes[i] <= 1024)
			status = gather(rank, sizes[i], i);
	if (status == TUTTI_OK)
		status = broadcasts(rank);
	for (int i = 0; i < 3 && status == TUTTI_OK; i++)
		status = tti_boot_all_gather(rank->boot, NULL, 0);
	tti_boot_close(rank->boot);
	return status;
}

static void run_sockets(int n, int nids)
{
	struct job job = { .nids = nids };

	for (int i = 0; i < nids; i++)
		CHECK_OK(tti_boot_id_create(&job.ids[i]));
	ranks_run(n, exchange, &job);
}

static void sockets_of_any_number_of_ranks(void **state)
{
	(void)state;
	for (int n = 1; n <= 9; n += SANITIZED ? 4 : 1)
		run_sockets(n, 1);
	run_sockets(17, 1);
	run_sockets(SANITIZED ? 33 : 64, 1);
}

static void sockets_of_many_ranks(void **state)
{
	(void)state;
	run_sockets(SANITIZED ? 64 : 256, 1);
}

static void several_roots(void **state)
{
	(void)state;
	run_sockets(2, 2);
	run_sockets(4, 4);
	run_sockets(7, 3);
	run_sockets(33, 4);
}

static void local_of_any_number_of_ranks(void **state)
{
	static const int counts[] = { 1, 2, 3, 8, 64 };
	struct tti_boot *boots[64];
	struct job job = { .local = boots };

	(void)state;
	for (int i = 0; i < 5; i++) {
		CHECK_OK(tti_boot_local_create(counts[i], NULL, boots));
		ranks_run(counts[i], exchange, &job);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sockets_of_any_number_of_ranks),
		cmocka_unit_test(sockets_of_many_ranks),
		cmocka_unit_test(several_roots),
		cmocka_unit_test(local_of_any_number_of_ranks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
