/* SPDX-License-Identifier: BSD-3-Clause */
/* A NIC fails while it carries the last message of a call, and the rank that has sent the message is no
 * longer in that call.
 *
 *     net_turns turns|stream|compute long|short SENDER DIR
 *
 * One rank of a job of two, told by the environment. Both have a communicator and a duplicate of it. Rank
 * SENDER (0 or 1) sends the other one a message on the first of the two, once DIR/down exists, and returns
 * from that call. Then it
 *
 *     turns      waits on the other communicator for what the receiver sends when it has the message
 *     stream     does the same in a stream, with a call on the first communicator queued behind it
 *     compute    makes no call until there is DIR/received, which the receiver makes when it has it
 *
 * `long`: the link has more lanes than one when that happens. `short`: it has carried too little for that.
 * A rank that is right to the end prints "right"; the sender also what its lanes have lost. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <tutti/inspect.h>
#include <tutti/tutti.h>

#define LONG  ((size_t)192 * 1024) /* so much fits into the buffers of two sockets */
#define LANES 16

struct turns {
	tutti_comm_t first, other;
	int rank, peer;
	bool sends;
	const char *kind, *dir;
	size_t nbytes;
	uint8_t *data;
};

static bool good(const struct turns *t, tutti_status status, const char *what)
{
	if (status)
		fprintf(stderr, "rank %d, %s: %s: %s; %s\n", t->rank, what,
			tutti_status_name(status), tutti_last_error(t->first),
			t->other ? tutti_last_error(t->other) : "");
	return status == TUTTI_OK;
}

static const char *path_of(const struct turns *t, const char *name, char buf[512])
{
	snprintf(buf, 512, "%s/%s", t->dir, name);
	return buf;
}

static bool make(const struct turns *t, const char *name)
{
	char path[512];
	FILE *file = fopen(path_of(t, name, path), "w");

	return file && fclose(file) == 0;
}

/* 100 s are far more than is needed. */
static bool await(const struct turns *t, const char *name)
{
	const struct timespec nap = { .tv_nsec = 5000000 };
	char path[512];

	path_of(t, name, path);
	for (int i = 0; i < 20000; i++) {
		if (access(path, F_OK) == 0)
			return true;
		nanosleep(&nap, NULL);
	}
	fprintf(stderr, "rank %d: there is no %s\n", t->rank, path);
	return false;
}

static tutti_status move(const struct turns *t, tutti_comm_t comm)
{
	return t->sends ? tutti_send(t->data, t->nbytes, TUTTI_UINT8, t->peer, comm, NULL)
			: tutti_recv(t->data, t->nbytes, TUTTI_UINT8, t->peer, comm, NULL);
}

/* How many lanes are up, and how often any was given up. */
static bool count_lanes(const struct turns *t, tutti_comm_t comm, int *up, unsigned *losses)
{
	const tutti_lane empty = TUTTI_LANE_INIT;
	tutti_lane lane[LANES];
	int n = 0;

	for (int i = 0; i < LANES; i++)
		lane[i] = empty;
	if (!good(t, tutti_comm_lanes(comm, t->peer, lane, LANES, &n), "lanes"))
		return false;
	*up = 0;
	*losses = 0;
	for (int i = 0; i < n && i < LANES; i++) {
		*up += lane[i].up != 0;
		*losses += lane[i].losses;
	}
	return true;
}

/* Until both communicators have two lanes on both sides; or once, where one lane shall do. */
static bool warm_up(const struct turns *t)
{
	tutti_comm_t comms[2] = { t->first, t->other };
	const bool is_long = t->nbytes == LONG;
	int32_t least;

	do {
		least = 2;
		for (int i = 0; i < 2; i++) {
			unsigned losses;
			int up;

			if (!good(t, move(t, comms[i]), "the first messages") ||
			    !count_lanes(t, comms[i], &up, &losses))
				return false;
			least = up < least ? up : least;
		}
		if (!good(t,
			  tutti_all_reduce(&least, &least, 1, TUTTI_INT32, TUTTI_MIN, t->first,
					   NULL),
			  "lanes of both"))
			return false;
	} while (is_long && least < 2);
	return true;
}

static bool fill(const struct turns *t, bool checks)
{
	for (size_t i = 0; i < t->nbytes; i++) {
		const uint8_t value = (uint8_t)(i * 167 + i / 251 + 13);

		if (checks && t->data[i] != value) {
			fprintf(stderr, "rank %d: byte %zu is %d, not %d\n", t->rank, i, t->data[i],
				value);
			return false;
		}
		t->data[i] = value;
	}
	return true;
}

static bool send_and_leave(const struct turns *t)
{
	int32_t word = 0;
	tutti_stream_t stream = NULL;
	bool right;

	fill(t, false);
	if (!good(t, move(t, t->first), "the message"))
		return false;
	if (!strcmp(t->kind, "compute"))
		return await(t, "received");
	if (!strcmp(t->kind, "turns"))
		return good(t, tutti_recv(&word, 1, TUTTI_INT32, t->peer, t->other, NULL),
			    "the answer");
	if (!good(t, tutti_stream_create(&stream), "a stream"))
		return false;
	right = good(t, tutti_recv(&word, 1, TUTTI_INT32, t->peer, t->other, stream),
		     "the answer") &&
		good(t, tutti_barrier(t->first, stream), "a call behind it") &&
		good(t, tutti_stream_synchronize(stream), "the stream");
	return good(t, tutti_stream_destroy(stream), "the end of the stream") && right;
}

static bool receive_and_answer(const struct turns *t)
{
	int32_t word = 1;

	memset(t->data, 0, t->nbytes);
	if (!good(t, move(t, t->first), "the message") || !fill(t, true))
		return false;
	if (!strcmp(t->kind, "compute"))
		return make(t, "received");
	if (!good(t, tutti_send(&word, 1, TUTTI_INT32, t->peer, t->other, NULL), "the answer"))
		return false;
	return strcmp(t->kind, "stream") != 0 ||
	       good(t, tutti_barrier(t->first, NULL), "a call behind it");
}

static bool run(const struct turns *t)
{
	unsigned losses = 0;
	int up;

	if (!warm_up(t) || !good(t, tutti_barrier(t->other, NULL), "the second barrier") ||
	    (t->rank == 0 && !make(t, "ready")) || !await(t, "down"))
		return false;
	if (!(t->sends ? send_and_leave(t) : receive_and_answer(t)) ||
	    !count_lanes(t, t->first, &up, &losses) ||
	    !good(t, tutti_barrier(t->first, NULL), "the last call") ||
	    !good(t, tutti_barrier(t->other, NULL), "the last call on the other communicator"))
		return false;
	if (t->sends)
		printf("lanes were lost %u times\n", losses);
	return true;
}

int main(int argc, char **argv)
{
	struct turns t = { 0 };
	bool right = false;

	if (argc != 5)
		return 2;
	t.kind = argv[1];
	t.nbytes = !strcmp(argv[2], "long") ? LONG : 8;
	t.dir = argv[4];
	t.data = malloc(t.nbytes);
	if (!t.data || !good(&t, tutti_comm_init_env(&t.first, NULL), "init"))
		goto done;
	if (good(&t, tutti_comm_rank(t.first, &t.rank), "rank") &&
	    good(&t, tutti_comm_dup(t.first, &t.other, NULL), "dup")) {
		t.peer = 1 - t.rank;
		t.sends = t.rank == atoi(argv[3]);
		right = run(&t);
		right &= good(&t, right ? tutti_comm_destroy(t.other) : tutti_comm_abort(t.other),
			      "end of the other");
		t.other = NULL;
	}
	right &= good(&t, right ? tutti_comm_destroy(t.first) : tutti_comm_abort(t.first), "end");
	if (right)
		puts("right");
done:
	free(t.data);
	return right ? 0 : 1;
}
