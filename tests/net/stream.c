/* SPDX-License-Identifier: BSD-3-Clause */
/* Data that is checked, for some seconds, while somebody disturbs the network.
 *
 *     net_stream send|exchange|all_reduce BYTES SECONDS|FILE|once [PAUSE_MS]
 *
 * One rank of a job, told by the environment. Rounds of two calls: rank 0 says in a broadcast
 * whether there is another one, which there is for so long, or until there is that file, and BYTES
 * move: from rank 0 to the last rank, between these two both ways at once, or as a sum of all. The
 * last rank sleeps PAUSE_MS before each round. Every element is compared, and all but 4 of 64 are
 * others in each round. Rank 0 prints "begin" after the first round; each rank ends with a line
 * "ROUNDS rounds, BYTES bytes right in SECONDS s, the longest MS ms". `once`: they move a single time, and nothing
 * else does: who has sent ends at once. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <tutti/tutti.h>

struct stream {
	tutti_comm_t comm;
	int rank, last;
	const char *kind;
	size_t count; /* of int32 */
	int32_t *send, *recv;
	const char *until; /* seconds, or the name of a file */
	int round;
};

static double now_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

/* What somebody who reads looks for (tests/campaign/networks.py): the same in each round. */
static const int32_t known[4] = { 0x6b6e6f, 0x776e20, 0x746578, 0x742021 };

static int32_t value(const struct stream *s, int rank, size_t i)
{
	if (i % 64 < 4)
		return known[i % 64];
	return (int32_t)((i * 2654435761u + (size_t)s->round * 40503u + (size_t)rank) & 0xffffff);
}

/* false: it failed, and said so. */
static bool good(const struct stream *s, tutti_status status)
{
	if (status)
		fprintf(stderr, "rank %d, round %d, %s: %s\n", s->rank, s->round,
			tutti_status_name(status), tutti_last_error(s->comm));
	return status == TUTTI_OK;
}

static tutti_status exchange(const struct stream *s)
{
	const int peer = s->last - s->rank;
	tutti_status status = tutti_group_start();
	tutti_status end;

	if (status)
		return status;
	status = tutti_send(s->send, s->count, TUTTI_INT32, peer, s->comm, NULL);
	if (status == TUTTI_OK)
		status = tutti_recv(s->recv, s->count, TUTTI_INT32, peer, s->comm, NULL);
	end = tutti_group_end();
	return status ? status : end;
}

static tutti_status call(const struct stream *s)
{
	if (!strcmp(s->kind, "all_reduce"))
		return tutti_all_reduce(s->send, s->recv, s->count, TUTTI_INT32, TUTTI_SUM, s->comm,
					NULL);
	if (s->rank != 0 && s->rank != s->last)
		return TUTTI_OK;
	if (!strcmp(s->kind, "exchange"))
		return exchange(s);
	if (s->rank == 0)
		return tutti_send(s->send, s->count, TUTTI_INT32, s->last, s->comm, NULL);
	return tutti_recv(s->recv, s->count, TUTTI_INT32, 0, s->comm, NULL);
}

static int32_t expected(const struct stream *s, size_t i)
{
	int32_t sum = 0;

	if (strcmp(s->kind, "all_reduce") != 0)
		return value(s, s->last - s->rank, i);
	for (int rank = 0; rank <= s->last; rank++)
		sum += value(s, rank, i);
	return sum;
}

static bool receives(const struct stream *s)
{
	if (!strcmp(s->kind, "all_reduce"))
		return true;
	return s->rank == s->last || (s->rank == 0 && !strcmp(s->kind, "exchange"));
}

static bool one_round(const struct stream *s)
{
	for (size_t i = 0; i < s->count; i++)
		s->send[i] = value(s, s->rank, i);
	memset(s->recv, 0xff, s->count * sizeof(*s->recv));
	if (!good(s, call(s)))
		return false;
	for (size_t i = 0; i < s->count && receives(s); i++)
		if (s->recv[i] != expected(s, i)) {
			fprintf(stderr, "rank %d, round %d: element %zu is %d, not %d\n", s->rank,
				s->round, i, (int)s->recv[i], (int)expected(s, i));
			return false;
		}
	return true;
}

static bool is_over(const struct stream *s, double passed)
{
	char *end;
	const double seconds = strtod(s->until, &end);

	return *end ? access(s->until, F_OK) == 0 : passed >= seconds;
}

static bool run(struct stream *s, long pause_ms)
{
	const struct timespec nap = { pause_ms / 1000, pause_ms % 1000 * 1000000 };
	double begin = now_seconds(), longest = 0;
	const double start = begin;
	int32_t more = 1;

	if (!strcmp(s->until, "once")) {
		puts("begin");
		return one_round(s) && puts("all bytes right") >= 0;
	}
	for (;; s->round++) {
		if (s->rank == s->last)
			nanosleep(&nap, NULL);
		more = !is_over(s, begin - start);
		if (!good(s, tutti_broadcast(&more, &more, 1, TUTTI_INT32, 0, s->comm, NULL)))
			return false;
		if (!more)
			break;
		if (!one_round(s))
			return false;
		if (s->round == 0 && s->rank == 0) {
			printf("begin\n");
			fflush(stdout);
		}
		longest = now_seconds() - begin > longest ? now_seconds() - begin : longest;
		begin = now_seconds();
	}
	printf("%d rounds, %zu bytes right in %.3f s, the longest %.0f ms\n", s->round,
	       (size_t)s->round * s->count * sizeof(int32_t), now_seconds() - start, longest * 1e3);
	return true;
}

int main(int argc, char **argv)
{
	struct stream s = { 0 };
	bool right = false;
	int n = 0;

	if (argc < 4)
		return 2;
	s.kind = argv[1];
	s.count = (size_t)strtoull(argv[2], NULL, 10) / sizeof(int32_t);
	s.send = malloc(s.count * sizeof(int32_t));
	s.recv = malloc(s.count * sizeof(int32_t));
	if (!good(&s, tutti_comm_init_env(&s.comm, NULL)))
		goto done;
	if (s.send && s.recv && good(&s, tutti_comm_rank(s.comm, &s.rank)) &&
	    good(&s, tutti_comm_count(s.comm, &n))) {
		s.last = n - 1;
		s.until = argv[3];
		right = run(&s, argc > 4 ? strtol(argv[4], NULL, 10) : 0);
	}
	right &= good(&s, right ? tutti_comm_destroy(s.comm) : tutti_comm_abort(s.comm));
done:
	free(s.send);
	free(s.recv);
	return right ? 0 : 1;
}
