/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages with tags between hosts.
 *
 *     net_message [wait]
 *
 * One rank of a job, told by the environment. All ranks send each other a short, a long and an empty
 * message, each with a tag of its own; the long ones are received first, from whoever comes. A rank
 * that got what was sent prints "right". With `wait` all then wait for a message of the last rank,
 * which sends none; rank 0 prints "begin" before. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tutti/tutti.h>

#define MOST  16
#define BYTES ((size_t)1 << 20)

enum { SHORT, LONG, EMPTY, NKINDS };

static const size_t sizes[NKINDS] = { 8, BYTES, 0 };
static unsigned char out[BYTES], in[BYTES];

struct rank {
	tutti_comm_t comm;
	tutti_channel_t channel;
	int rank, n;
};

/* false: it failed, and said so. */
static bool good(const struct rank *me, tutti_status status)
{
	if (status)
		fprintf(stderr, "rank %d, %s: %s\n", me->rank, tutti_status_name(status),
			tutti_last_error(me->comm));
	return status == TUTTI_OK;
}

static unsigned char byte(int rank, size_t i)
{
	return (unsigned char)(i * 7 + (i >> 9) + (size_t)rank * 31);
}

static bool receive(const struct rank *me, int source, int kind)
{
	tutti_message_info info;

	memset(in, 0xff, sizes[kind]);
	if (!good(me, tutti_message_recv(me->channel, in, sizes[kind], source, kind, &info)))
		return false;
	for (size_t i = 0; i < info.bytes; i++)
		if (in[i] != byte(info.source, i)) {
			fprintf(stderr, "rank %d: byte %zu of rank %d with tag %d is wrong\n",
				me->rank, i, info.source, kind);
			return false;
		}
	return info.bytes == sizes[kind] && info.tag == kind &&
	       (source == TUTTI_ANY_SOURCE || source == info.source);
}

static bool exchange(const struct rank *me)
{
	tutti_request_t requests[MOST][NKINDS];
	bool right = me->n <= MOST;

	for (size_t i = 0; i < BYTES; i++)
		out[i] = byte(me->rank, i);
	for (int peer = 0; peer < me->n && right; peer++)
		for (int kind = 0; kind < NKINDS && right; kind++)
			right = good(me, tutti_message_isend(me->channel, out, sizes[kind], peer,
							     kind, &requests[peer][kind]));
	for (int i = 0; i < me->n && right; i++)
		right = receive(me, TUTTI_ANY_SOURCE, LONG);
	for (int peer = 0; peer < me->n && right; peer++)
		right = receive(me, peer, EMPTY) && receive(me, peer, SHORT);
	for (int peer = 0; peer < me->n && right; peer++)
		for (int kind = 0; kind < NKINDS && right; kind++)
			right = good(me, tutti_message_wait(me->channel, requests[peer][kind], -1,
							    NULL));
	return right;
}

static bool wait_for_last(const struct rank *me)
{
	if (me->rank == 0) {
		printf("begin\n");
		fflush(stdout);
	}
	while (me->rank == me->n - 1)
		pause();
	return good(me, tutti_message_recv(me->channel, in, BYTES, me->n - 1, SHORT, NULL));
}

int main(int argc, char **argv)
{
	struct rank me = { .rank = -1 };
	bool right;

	right = good(&me, tutti_comm_init_env(&me.comm, NULL)) &&
		good(&me, tutti_comm_rank(me.comm, &me.rank)) &&
		good(&me, tutti_comm_count(me.comm, &me.n)) &&
		good(&me, tutti_channel_create(me.comm, &me.channel)) && exchange(&me);
	if (right)
		printf("right\n");
	if (right && argc > 1 && !strcmp(argv[1], "wait"))
		right = wait_for_last(&me);
	if (!right) {
		(void)tutti_comm_abort(me.comm);
		(void)tutti_channel_destroy(me.channel);
		return 1;
	}
	right = good(&me, tutti_channel_destroy(me.channel));
	return good(&me, tutti_comm_destroy(me.comm)) && right ? 0 : 1;
}
