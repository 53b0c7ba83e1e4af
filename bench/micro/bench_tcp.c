/* SPDX-License-Identifier: BSD-3-Clause */
/* The TCP transport between two processes over loopback: round trips of 8 B, and
 * one-way and both-way streams, by size of a slot and number of sockets. Medians.
 *
 *     bench_tcp [MS [WINDOW [encrypt]]]
 *         MS      per figure, 100
 *         WINDOW  KiB in flight per direction, whatever the size of a slot, 1024
 *         encrypt the word: as in a job with TUTTI_ENCRYPT=1
 *
 * The bytes of a stream are neither written nor read by the benchmark: what is
 * measured is the transport, the kernel's two copies included. */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "transport/tcp/tcp.h"
#include "util/clock.h"
#include "util/error.h"

#define REPEATS 7
/* In flight per direction, whatever the size of a slot. */

static const struct tti_transport *const tcp = &tti_transport_tcp;
static int64_t figure_ns = 100 * TTI_NS_PER_MS;
static size_t window = 1 << 20;
static bool encrypts;

struct pair {
	struct tti_port *port[2];
	struct tti_card card[2];
};

static bool open_pair(struct pair *pair, size_t slot_bytes, int slots, int sockets)
{
	static uint8_t secret[32];
	const struct tti_tcp_options options = { .sockets = sockets,
						 .handshake_ms = 5000,
						 .encrypt = encrypts };
	struct tti_port_config config = {
		.nranks = 2,
		.secret = secret,
		.slot_bytes = slot_bytes,
		.slots = slots,
		.timeout_ms = 5000,
	};

	for (config.rank = 0; config.rank < 2; config.rank++) {
		if (tti_tcp_open(&config, &options, &pair->port[config.rank],
				 &pair->card[config.rank]))
			return false;
	}
	return true;
}

static struct tti_link *link_up(struct pair *pair, int rank)
{
	struct tti_link *link;
	uint64_t domain;
	tutti_status status;

	if (tcp->join(pair->port[rank], pair->card, &domain))
		return NULL;
	while ((status = tcp->connect(pair->port[rank], 1 - rank, &link)) == TUTTI_AGAIN)
		tcp->progress(pair->port[rank]);
	return status ? NULL : link;
}

/* One message each way; `first` begins. */
static bool round_trip(struct tti_port *port, struct tti_link *link, bool first)
{
	size_t nbytes;
	uint64_t tag = 0;

	for (int turn = 0; turn < 2; turn++) {
		if ((turn == 0) == first) {
			while (!link->ops->reserve(link, 8, 0)) {
				if (port->failure)
					return false;
				tcp->progress(port);
			}
			link->ops->commit(link, 8, tag);
		} else {
			while (!link->ops->peek(link, &nbytes, &tag)) {
				if (port->failure)
					return false;
				tcp->progress(port);
			}
			link->ops->release(link);
		}
	}
	return true;
}

/* Send and receive so many messages at the same time. */
static bool stream(struct tti_port *port, struct tti_link *link, size_t size, uint64_t out,
		   uint64_t in)
{
	size_t nbytes;
	uint64_t tag;

	while (out || in || port->unsent) {
		bool moved = false;

		if (out && link->ops->reserve(link, size, 0)) {
			link->ops->commit(link, size, 0);
			out--, moved = true;
		}
		if (in && link->ops->peek(link, &nbytes, &tag)) {
			link->ops->release(link);
			in--, moved = true;
		}
		if (!moved)
			tcp->progress(port);
		if (port->failure)
			return false;
	}
	return true;
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *value)
{
	qsort(value, REPEATS, sizeof(*value), compare);
	return value[REPEATS / 2];
}

struct figures {
	double rtt_us, one_way, both_ways; /* GB/s per direction */
};

/* Both processes do this; the numbers of round trips and messages are rank 0's. */
static bool measure(struct pair *pair, struct tti_link *link, int rank, size_t size,
		    volatile uint64_t *shared, struct figures *out)
{
	struct tti_port *port = pair->port[rank];
	double rtt[REPEATS], one[REPEATS], both[REPEATS];
	const uint64_t messages = (uint64_t)figure_ns * 2 / size + 16; /* at 2 GB/s */
	uint64_t trips = 200;

	for (int i = 0; i < REPEATS + 1; i++) {
		const int64_t t0 = tti_now_ns();
		int64_t t1, t2, t3;

		for (uint64_t k = 0; k < trips; k++) {
			if (!round_trip(port, link, rank == 0))
				return false;
		}
		t1 = tti_now_ns();
		if (!stream(port, link, size, rank ? 0 : messages, rank ? messages : 0) ||
		    !round_trip(port, link, rank == 0))
			return false;
		t2 = tti_now_ns();
		if (!stream(port, link, size, messages, messages) ||
		    !round_trip(port, link, rank == 0))
			return false;
		t3 = tti_now_ns();
		if (i) {
			rtt[i - 1] = (double)(t1 - t0) / 1e3 / (double)trips;
			one[i - 1] = (double)(messages * size) / (double)(t2 - t1);
			both[i - 1] = (double)(messages * size) / (double)(t3 - t2);
		}
		/* From the warm-up on, as many as fit. */
		if (rank == 0)
			*shared = (uint64_t)figure_ns * trips / (uint64_t)(t1 - t0) / 4 + 1;
		if (!round_trip(port, link, rank == 0))
			return false;
		trips = *shared;
		if (!round_trip(port, link, rank == 1))
			return false;
	}
	*out = (struct figures){ median(rtt), median(one), median(both) };
	return true;
}

static bool run(struct pair *pair, int rank, size_t size, volatile uint64_t *shared,
		struct figures *out)
{
	struct tti_link *link = link_up(pair, rank);
	const bool good = link && measure(pair, link, rank, size, shared, out);

	if (link)
		tcp->close(link);
	tcp->shutdown(pair->port[rank]);
	return good;
}

static bool figure(size_t slot_bytes, int slots, int sockets, volatile uint64_t *shared)
{
	struct figures got;
	struct pair pair;
	pid_t child;
	bool good;
	int status;

	if (!open_pair(&pair, slot_bytes, slots, sockets))
		return false;
	/* Not by fork(), after which a process does not have the sockets of its parent. */
	child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (child < 0)
		return false;
	if (!child)
		_exit(run(&pair, 1, slot_bytes, shared, &got) ? 0 : 1);
	good = run(&pair, 0, slot_bytes, shared, &got);
	if (!good)
		kill(child, SIGKILL);
	if (waitpid(child, &status, 0) != child || !good)
		return false;
	printf("%7zuK %6d %8d %10.1f %10.2f %10.2f\n", slot_bytes >> 10, slots, sockets, got.rtt_us,
	       got.one_way, got.both_ways);
	fflush(stdout);
	return true;
}

int main(int argc, char **argv)
{
	volatile uint64_t *shared =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (shared == MAP_FAILED)
		return 1;
	if (argc > 1)
		figure_ns = atol(argv[1]) * TTI_NS_PER_MS;
	if (argc > 2)
		window = (size_t)atol(argv[2]) << 10;
	encrypts = argc > 3 && strcmp(argv[3], "encrypt") == 0;
	printf("%8s %6s %8s %10s %10s %10s\n", "slot", "slots", "sockets", "8 B rtt", "one way",
	       "both ways");
	printf("%8s %6s %8s %10s %10s %10s\n", "", "", "", "us", "GB/s", "GB/s each");
	for (int sockets = 1; sockets <= 2; sockets++) {
		for (size_t slot = 64 << 10; slot <= window / 2; slot *= 2) {
			if (figure(slot, (int)(window / slot), sockets, shared))
				continue;
			fprintf(stderr, "failed: %s\n", tti_error_text());
			return 1;
		}
	}
	return 0;
}
