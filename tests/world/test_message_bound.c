/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages with tags: how many a rank announces to one that does not receive, and how long a channel's
 * thread keeps the calls of others out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/message/message.h"
#include "core/message/message_request.h"
#include "core/message/message_serve.h"
#include "support/world.h"

/* What is not announced can be taken back, and is announced
 * when receives have taken older ones. */
static void announcements_are_bounded(tutti_comm_t comm, int rank, int n, void *arg)
{
	enum { KEPT = 16384, MORE = 200, LAST = KEPT + MORE / 2 - 1 };
	static const char out[16385];
	tutti_request_t *requests = calloc(KEPT + MORE, sizeof(*requests));
	tutti_channel_t channel;
	char in[16385];

	(void)n;
	(void)arg;
	if (!CHECK_OK(tutti_channel_create(comm, &channel)))
		return;
	for (int i = 0; rank == 0 && i < KEPT + MORE; i++)
		CHECK_OK(tutti_message_isend(channel, out, sizeof(out), 1, i, &requests[i]));
	if (rank == 1)
		CHECK_OK(tutti_message_probe(channel, 0, KEPT - 1, -1, NULL));
	CHECK_OK(tutti_barrier(comm, NULL));
	if (rank == 0) {
		CHECK(tutti_message_cancel(channel, requests[KEPT - 1]) == TUTTI_AGAIN);
		for (int i = KEPT + MORE - 1; i > LAST; i--)
			CHECK_OK(tutti_message_cancel(channel, requests[i]));
	} else {
		CHECK(tutti_message_probe(channel, 0, KEPT, 0, NULL) == TUTTI_AGAIN);
	}
	CHECK_OK(tutti_barrier(comm, NULL));
	for (int i = 0; i < MORE / 2; i++)
		if (rank == 0)
			CHECK_OK(tutti_message_wait(channel, requests[i], -1, NULL));
		else
			CHECK_OK(tutti_message_recv(channel, in, sizeof(in), 0, i, NULL));
	if (rank == 1)
		CHECK_OK(tutti_message_probe(channel, 0, LAST, -1, NULL));
	CHECK_OK(tutti_barrier(comm, NULL));
	CHECK_OK(tutti_channel_destroy(channel));
	free(requests);
}

/* Whether a send waits to be announced. It moves nothing, unlike the calls. */
static bool is_unsent(tutti_channel_t channel, int peer)
{
	bool is;

	pthread_mutex_lock(&channel->lock);
	is = channel->peers[peer].unsent.first != NULL;
	pthread_mutex_unlock(&channel->lock);
	return is;
}

/* A short message waits behind a long one that cannot be announced, and no longer. */
static void a_cancelled_send_lets_others_go(tutti_comm_t comm, int rank, int n, void *arg)
{
	enum { KEPT = 16384 };
	static const char out[16385];
	tutti_request_t *requests = calloc(KEPT + 2, sizeof(*requests));
	tutti_channel_t channel;

	(void)n;
	(void)arg;
	if (!CHECK_OK(tutti_channel_create(comm, &channel)))
		return;
	for (int i = 0; rank == 0 && i < KEPT + 2; i++)
		CHECK_OK(tutti_message_isend(channel, out, i <= KEPT ? sizeof(out) : 1, 1, i,
					     &requests[i]));
	if (rank == 1)
		CHECK_OK(tutti_message_probe(channel, 0, KEPT - 1, -1, NULL));
	CHECK_OK(tutti_barrier(comm, NULL));
	if (rank == 0) {
		CHECK(is_unsent(channel, 1));
		CHECK_OK(tutti_message_cancel(channel, requests[KEPT]));
		CHECK(!is_unsent(channel, 1));
	} else {
		CHECK_OK(tutti_message_probe(channel, 0, KEPT + 1, -1, NULL));
	}
	CHECK_OK(tutti_barrier(comm, NULL));
	CHECK_OK(tutti_channel_destroy(channel));
	free(requests);
}

static void announcements(void **unused)
{
	(void)unused;
	assert_int_equal(world_run(&(struct world){ .n = 2 }, announcements_are_bounded, NULL), 0);
	assert_int_equal(world_run(&(struct world){ .n = 2, .transport = "tcp" },
				   announcements_are_bounded, NULL),
			 0);
	assert_int_equal(
		world_run(&(struct world){ .n = 2 }, a_cancelled_send_lets_others_go, NULL), 0);
}

/* -- While a message moves ----------------------------------------------------------------- */

/* How much of it is here. It moves nothing, unlike the calls. */
static size_t look(tutti_channel_t channel, tutti_request_t id)
{
	const struct tti_request *request;
	size_t moved;

	tti_channel_lock(channel);
	request = tti_request_find(channel, id);
	moved = request ? request->moved : 0;
	pthread_mutex_unlock(&channel->lock);
	return moved;
}

/* How often this thread has the channel's lock between two steps of a message to itself, which the
 * channel's thread moves alone. */
static int count_steps(tutti_channel_t channel, char *data, size_t nbytes)
{
	tutti_request_t in, out;
	size_t moved, last = 0;
	int steps = 0;

	CHECK_OK(tutti_message_irecv(channel, data, nbytes, 0, 5, &in));
	CHECK_OK(tutti_message_isend(channel, data + nbytes, nbytes, 0, 5, &out));
	do {
		moved = look(channel, in);
		steps += moved != last;
		last = moved;
	} while (moved < nbytes);
	CHECK_OK(tutti_message_wait(channel, in, -1, NULL));
	CHECK_OK(tutti_message_wait(channel, out, -1, NULL));
	return steps;
}

/* Again where this thread did not run meanwhile. */
static void others_get_the_lock(tutti_comm_t comm, int rank, int n, void *arg)
{
	enum { ENOUGH = 4, TRIES = 20 };
	const size_t nbytes = (size_t)64 << 20;
	char *data = calloc(2, nbytes);
	tutti_channel_t channel;
	int steps = 0;

	(void)n;
	(void)arg;
	if (!CHECK_OK(tutti_channel_create(comm, &channel)))
		return;
	for (int i = 0; rank == 0 && i < TRIES && steps < ENOUGH; i++)
		steps = count_steps(channel, data, nbytes);
	CHECK(rank != 0 || steps >= ENOUGH);
	CHECK_OK(tutti_channel_destroy(channel));
	free(data);
}

static void others_while_a_message_moves(void **unused)
{
	static const char *const transports[] = { "shm", "tcp" };

	(void)unused;
	for (int i = 0; i < 2; i++)
		assert_int_equal(world_run(&(struct world){ .n = 2, .transport = transports[i] },
					   others_get_the_lock, NULL),
				 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(announcements),
		cmocka_unit_test(others_while_a_message_moves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
