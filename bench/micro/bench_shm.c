/* SPDX-License-Identifier: BSD-3-Clause */
/* The shm transport alone, two processes on two cores:
 *   pingpong   one way of an 8-byte message
 *   exchange   both send 8 bytes, then both receive: an all_reduce without the sum
 *   stream     one way, each message written and read in whole, as the engine does
 *   swap       both write such a message, then both read: an all_gather
 * Medians of the runs, with the room that a link has by default.
 * bench_shm [SLICE...]: bytes of a message of the stream, 64 KiB. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "reduce/reduce.h"
#include "transport/transport.h"
#include "util/clock.h"
#include "util/thread.h"

#define RUNS         201
#define ROUNDS       200
#define SPINS        20 /* then yield: the other one may need this core */
#define BUFFER_BYTES (UINT64_C(8) << 20)
#define SLOT_BYTES   (UINT64_C(256) << 10)
#define MOST         512 /* messages of a stream: short runs are disturbed less */

struct shared {
	struct tti_card cards[2];
	_Atomic int here;
};

static const uint8_t secret[32] = { 1 };
static struct shared *shared;
static size_t slices[16] = { 65536 }, slice, whole_bytes;
static int nslices = 1;
static uint8_t *buffer;

static void die(const char *what)
{
	perror(what);
	_exit(1);
}

static void meet(int count)
{
	atomic_fetch_add(&shared->here, 1);
	while (atomic_load(&shared->here) < count)
		sched_yield();
}

static inline void relax(int *spins)
{
	if (++*spins > SPINS) {
		sched_yield();
		*spins = 0;
	} else {
		tti_cpu_relax();
	}
}

static inline void *reserve(struct tti_link *link, size_t nbytes)
{
	void *room;

	for (int spins = 0; !(room = link->ops->reserve(link, nbytes, 0));)
		relax(&spins);
	return room;
}

static inline const void *peek(struct tti_link *link, size_t *nbytes)
{
	const void *data;
	uint64_t tag;

	for (int spins = 0; !(data = link->ops->peek(link, nbytes, &tag));)
		relax(&spins);
	return data;
}

static inline void send_word(struct tti_link *link, uint64_t value)
{
	*(uint64_t *)reserve(link, sizeof(value)) = value;
	link->ops->commit(link, sizeof(value), value);
}

static inline void recv_word(struct tti_link *link, uint64_t value)
{
	size_t nbytes;

	if (*(const uint64_t *)peek(link, &nbytes) != value || nbytes != sizeof(value))
		die("wrong message");
	link->ops->release(link);
}

static double pingpong(int rank, struct tti_link *link)
{
	const int64_t begin = tti_now_ns();

	for (uint64_t k = 0; k < ROUNDS; k++) {
		if (rank == 0)
			send_word(link, k);
		recv_word(link, k);
		if (rank == 1)
			send_word(link, k);
	}
	return (double)(tti_now_ns() - begin) / ROUNDS / 2;
}

static double exchange(int rank, struct tti_link *link)
{
	const int64_t begin = tti_now_ns();

	(void)rank;
	for (uint64_t k = 0; k < ROUNDS; k++) {
		send_word(link, k);
		recv_word(link, k);
	}
	return (double)(tti_now_ns() - begin) / ROUNDS;
}

static inline void put(struct tti_link *link, size_t at)
{
	tti_copy_out(&link->way, reserve(link, slice), buffer + at, slice);
	link->ops->commit(link, slice, 0);
}

static inline void get(struct tti_link *link, size_t at)
{
	size_t nbytes;
	const void *const data = peek(link, &nbytes);

	tti_copy(buffer + at, data, nbytes, 0);
	link->ops->release(link);
}

static double stream(int rank, struct tti_link *link)
{
	const int64_t begin = tti_now_ns();

	for (size_t at = 0; at < whole_bytes; at += slice) {
		if (rank == 0)
			put(link, at);
		else
			get(link, at);
	}
	/* The receiver says when it is through. */
	if (rank == 0)
		recv_word(link, 0);
	else
		send_word(link, 0);
	return (double)(tti_now_ns() - begin);
}

static double swap(int rank, struct tti_link *link)
{
	const int64_t begin = tti_now_ns();

	(void)rank;
	for (size_t at = 0; at < whole_bytes; at += slice) {
		put(link, 0);
		get(link, slice);
	}
	return (double)(tti_now_ns() - begin);
}

static int compare(const void *a, const void *b)
{
	const double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static double median(double (*one)(int, struct tti_link *), int rank, struct tti_link *link)
{
	static double runs[RUNS];

	for (int k = -10; k < RUNS; k++) {
		const double ns = one(rank, link);

		runs[k < 0 ? 0 : k] = ns;
	}
	qsort(runs, RUNS, sizeof(*runs), compare);
	return runs[RUNS / 2];
}

static void measure(int rank, struct tti_link *link)
{
	const double one_way = median(pingpong, rank, link);
	const double both = median(exchange, rank, link);

	if (rank == 0)
		printf("pingpong %.0f ns one way, exchange %.0f ns\n", one_way, both);
	for (int i = 0; i < nslices; i++) {
		double streamed, swapped, n;

		slice = slices[i];
		n = (double)(BUFFER_BYTES / 2 / slice < MOST ? BUFFER_BYTES / 2 / slice : MOST);
		whole_bytes = (size_t)n * slice;
		streamed = median(stream, rank, link) / n;
		swapped = median(swap, rank, link) / n;
		if (rank == 0)
			printf("%7zu bytes: stream %7.3f us a message, %4.1f GB/s, swap %7.3f us\n",
			       slice, streamed / 1e3, (double)slice / streamed, swapped / 1e3);
	}
}

static void run(int rank)
{
	const struct tti_port_config config = { .rank = rank,
						.nranks = 2,
						.secret = secret,
						.slot_bytes = SLOT_BYTES,
						.slots = 2,
						.timeout_ms = 5000 };
	const struct tti_transport *const shm = &tti_transport_shm;
	struct tti_port *port = NULL;
	struct tti_link *link = NULL;
	uint64_t domain = 0;
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET((size_t)rank, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus) != 0)
		perror("not pinned");
	buffer = malloc(BUFFER_BYTES);
	if (!buffer)
		die("malloc");
	memset(buffer, rank, BUFFER_BYTES);
	if (shm->open(&config, &port, &shared->cards[rank]) != TUTTI_OK)
		_exit(1);
	meet(2);
	if (shm->join(port, shared->cards, &domain) != TUTTI_OK ||
	    shm->connect(port, 1 - rank, &link) != TUTTI_OK)
		_exit(1);
	measure(rank, link);
	meet(4);
	shm->close(link);
	shm->shutdown(port);
	free(buffer);
}

int main(int argc, char **argv)
{
	int status = 1;
	pid_t child;

	for (int i = 1; i < argc; i++) {
		slices[(i - 1) % 16] = (size_t)strtoul(argv[i], NULL, 10);
		nslices = i;
		if (i > 16 || slices[i - 1] < 1 || slices[i - 1] > SLOT_BYTES) {
			fprintf(stderr, "usage: %s [SLICE...], at most 16 of at most %zu bytes\n",
				argv[0], (size_t)SLOT_BYTES);
			return 2;
		}
	}
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		die("mmap");
	child = fork();
	if (child < 0)
		die("fork");
	run(child ? 0 : 1);
	if (!child)
		_exit(0);
	return waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}
